# What the machine itself must offer: the platform, system packages, namespaces for bubblewrap.
# Sourced by scripts/setup.

check_platform() {
  if [ "$(uname -s)" != Linux ] || [ "$(uname -m)" != x86_64 ]; then
    die "Codecell runs on Linux on x86-64 only: this machine is $(uname -s) on $(uname -m)." \
      "The filter for system calls is written for that architecture."
  fi
}

is_root() {
  [ "$(id -u)" -eq 0 ]
}

# Runs a command as the sandbox will run: a root service gives it a uid of its own.
as_sandbox_user() {
  if is_root; then
    (cd / && setpriv --reuid 60999 --regid 60999 --clear-groups -- "$@")
  else
    (cd / && "$@")
  fi
}

# as_admin WHY LINE...: runs the command lines as root. An ordinary user is shown them, and asked on a terminal.
as_admin() {
  say "$1"
  shift
  if is_root; then
    for line in "$@"; do
      say "  $line"
      quietly sh -c "$line"
    done
    return
  fi
  say "An administrator has to run:"
  for line in "$@"; do say "  sudo $line"; done
  if [ ! -t 0 ] || ! command -v sudo >/dev/null; then
    die "Then run scripts/setup again."
  fi
  printf 'Run this now? [y/N] ' >&2
  read -r answer || answer=
  case $answer in
    y | Y | yes) ;;
    *) die "Nothing was changed. Run scripts/setup again when that is done." ;;
  esac
  # Word splitting is meant: a line is a plain command without quotes.
  for line in "$@"; do sudo $line >&2 || die "This failed: sudo $line"; done
}

# install_packages WHY PACKAGE...
install_packages() {
  why=$1
  shift
  if ! command -v apt-get >/dev/null; then
    die "$why" "This is neither Debian nor Ubuntu, so set-up does not guess names of packages. It needs:" \
      "  the command bwrap (bubblewrap 0.8 or newer)" \
      "  libseccomp.so.2 (libseccomp 2.5 or newer)" \
      "  Python $python_range with the modules venv and ensurepip" \
      "  the commands flock and setpriv (util-linux)" "Install what is missing, then run scripts/setup again."
  fi
  if is_root; then
    export DEBIAN_FRONTEND=noninteractive
    # A fresh container image has no package lists at all, an old machine has stale ones.
    apt-get install --dry-run "$@" >/dev/null 2>&1 || apt-get update >/dev/null 2>&1 ||
      say "apt-get update failed; trying to install all the same."
  fi
  as_admin "$why" "apt-get install -y $*"
}

install_system_packages() {
  missing=
  command -v bwrap >/dev/null || missing="$missing bubblewrap"
  /sbin/ldconfig -p 2>/dev/null | grep -q 'libseccomp\.so\.2 .*x86-64' || missing="$missing libseccomp2"
  if ! find_python; then
    missing="$missing $(python_package)"
  fi
  [ -n "$missing" ] || return 0
  # Word splitting is meant: names of packages.
  install_packages "Missing on this machine:$missing" $missing
  find_python || die "No usable Python $python_range.$python_rejected"
}

try_namespaces() {
  namespace_error=$(as_sandbox_user bwrap --unshare-user --unshare-pid --unshare-net --ro-bind / / true 2>&1)
}

setting_is() {
  [ "$(cat "/proc/sys/$1" 2>/dev/null)" = "$2" ]
}

# Tries what the sandbox is built on, rather than reading settings: the kernel has many ways to refuse it.
check_namespaces() {
  try_namespaces && return
  if setting_is kernel/unprivileged_userns_clone 0; then
    suggest_sysctl kernel.unprivileged_userns_clone=1
  elif setting_is user/max_user_namespaces 0; then
    suggest_sysctl user.max_user_namespaces=15000
  elif setting_is kernel/apparmor_restrict_unprivileged_userns 1; then
    load_apparmor_profile
  fi
  try_namespaces || die "bubblewrap cannot make its namespaces on this machine. It says:" "  $namespace_error" \
    "In a container, allow it user namespaces (Docker: a seccomp and AppArmor profile that permit them)." \
    "In a chroot the kernel never does."
}

# Settings of the whole machine are the administrator's to change: they are shown and never set.
suggest_sysctl() {
  die "This machine forbids the user namespaces that the sandbox is made of. An administrator has to run:" \
    "  echo $1 | sudo tee /etc/sysctl.d/60-codecell.conf" \
    "  sudo sysctl --system" \
    "Then run scripts/setup again."
}

# Ubuntu 24.04 and later give user namespaces only to programs with a profile that allows them. The distribution
# has one for bubblewrap; 24.04 does not enable it. The restriction itself stays on for everything else.
load_apparmor_profile() {
  profile=bwrap-userns-restrict
  if [ -f "/etc/apparmor.d/$profile" ]; then
    as_admin "AppArmor keeps bubblewrap from making namespaces; its profile is there but not loaded." \
      "apparmor_parser -r /etc/apparmor.d/$profile"
    return
  fi
  [ -f "/usr/share/apparmor/extra-profiles/$profile" ] ||
    set -- "apt-get install -y apparmor-profiles"
  as_admin "AppArmor keeps bubblewrap from making namespaces; the distribution has a profile that allows it." \
    "$@" \
    "cp /usr/share/apparmor/extra-profiles/$profile /etc/apparmor.d/" \
    "apparmor_parser -r /etc/apparmor.d/$profile"
}
