# Finds the Python that the sandbox's own environment is made from. Sourced by scripts/setup.

python_range='3.11 to 3.14'

# find_python: sets python and python_version; or fails with python_rejected saying why each was passed over.
find_python() {
  python_rejected=
  for candidate in /usr/bin/python3 /usr/local/bin/python3 python3 python3.14 python3.13 python3.12 python3.11; do
    python=$(command -v "$candidate") || continue
    # Tried as the sandbox's user: one below /root is of no use to it.
    if ! python_facts=$(as_sandbox_user "$python" -I -c '
import sys, importlib.util as modules
print("%d.%d.%d" % sys.version_info[:3], int((3, 11) <= sys.version_info[:2] <= (3, 14)),
      int(all(modules.find_spec(name) for name in ("venv", "ensurepip"))))' 2>/dev/null); then
      reject "$python cannot be run by the sandbox's user"
      continue
    fi
    python_version=${python_facts%% *}
    case $python_facts in
      *' 1 1') return 0 ;;
      *' 1 0') reject "$python ($python_version) has no venv with ensurepip" ;;
      *) reject "$python is $python_version" ;;
    esac
  done
  python=
  return 1
}

reject() {
  python_rejected="$python_rejected
  $1"
}

# The Debian package that makes find_python succeed: the environment module of a Python that is there already,
# or else of the newest one in range that this distribution has.
python_package() {
  for version in 3.11 3.12 3.13 3.14; do
    case $python_rejected in
      *"/usr/bin/python3 ($version."*) echo "python$version-venv" && return ;;
    esac
  done
  for version in 3.14 3.13 3.12 3.11; do
    apt-cache show "python$version-venv" >/dev/null 2>&1 && echo "python$version-venv" && return
  done
  echo python3-venv
}
