# How scripts speak: short lines on standard error, output of other commands only when they fail.

say() { printf '%s\n' "$*" >&2; }

# die PARAGRAPH...
die() {
  for paragraph in "$@"; do say "$paragraph"; done
  exit 1
}

# quietly COMMAND...
quietly() {
  if ! output=$("$@" 2>&1 </dev/null); then
    printf '%s\n' "$output" | tail -n 30 >&2
    die "This failed: $*" ${advice:+"$advice"}
  fi
}

# downloading COMMAND...: as quietly, for what needs the network.
downloading() {
  advice="Set-up downloads packages of npm and PyPI, from where npm and pip are set to. Can this machine reach that?"
  quietly "$@"
  advice=
}
