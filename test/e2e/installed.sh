#!/usr/bin/env bash
# installed.sh BUILD_DIR SOURCE_DIR: installs into a folder of its own and answers with the embedded model from another one; and by the
# library, with the commands that docs/library.md shows.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" > "$prefix/install.log"
cd /
answer=$("$prefix/bin/braid" run "What is 17 + 25?")
echo "$answer"
[ "$answer" = "17 + 25 = 42." ]

cmake --install "$1" --component ranks --prefix "$prefix" > "$prefix/ranks.log"
[ ! -e "$1/braid-rank" ] || [ -x "$prefix/bin/braid-rank" ]

mkdir -p "$prefix/place/build"
ln -s "$1" "$prefix/place/build/release"
ln -s "$2/docs" "$prefix/place/docs"
cp "$2/models/demo-q8_0.gguf" "$prefix/place/model.gguf"
commands=$(sed -n 's/^    //p' "$2/docs/library.md" | sed '/--preset/d' | sed "s|/opt/braid|$prefix|g")
echo "$commands"
[ "$(grep -c -e '^cmake --install ' -e '^cmake -S ' -e '^example/example ' <<<"$commands")" = 3 ]
cd "$prefix/place"
told=$(bash -euo pipefail -c "$commands" 2> "$prefix/library.err") || { cat "$prefix/library.err" >&2; echo "$told" >&2; exit 1; }
told=$(tail -n 3 <<<"$told")
echo "$told"
[[ $told == "17 + 25 = 42."*"400 of 400 answers are whole" ]]
