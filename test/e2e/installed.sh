#!/usr/bin/env bash
# installed.sh BUILD_DIR [SOURCE_DIR]: installs into a folder of its own and answers with the embedded model from another one; with the
# sources' folder also by the library, in the program that docs/library shows.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" > "$prefix/install.log"
cd /
answer=$("$prefix/bin/braid" run "What is 17 + 25?")
echo "$answer"
[ "$answer" = "17 + 25 = 42." ]

[ -n "${2:-}" ] || exit 0
cmake --install "$1" --component library --prefix "$prefix" > "$prefix/library.log"
cmake -S "$2/docs/library" -B "$prefix/example" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release > "$prefix/configure.log"
cmake --build "$prefix/example" > "$prefix/build.log" || { cat "$prefix/build.log" >&2; exit 1; }
told=$("$prefix/example/example")
echo "$told"
[[ $told == "17 + 25 = 42."*"400 of 400 answers are whole" ]]
