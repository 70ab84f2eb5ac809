#!/usr/bin/env bash
# installed.sh BUILD_DIR: installs into a folder of its own and answers with the embedded model from another one.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" > "$prefix/install.log"
cd /
answer=$("$prefix/bin/braid" run "What is 17 + 25?")
echo "$answer"
[ "$answer" = "17 + 25 = 42." ]
