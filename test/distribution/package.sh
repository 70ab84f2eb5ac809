#!/usr/bin/env bash
# package.sh BUILD_DIR: makes the .deb of what is built there, unpacks it, and answers with its program.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "package: $*" >&2; exit 1; }

cpack --config "$1/CPackConfig.cmake" -B "$folder" >"$folder/log" || { cat "$folder/log" >&2; exit 1; }
package=$(echo "$folder"/*.deb)
dpkg-deb -I "$package"
dpkg-deb -x "$package" "$folder/root"
for file in etc/braid/braid.yaml usr/lib/systemd/{system/braid.{service,socket},user/braid.service} usr/lib/sysusers.d/braid.conf usr/share/doc/braid/{copyright,README.md} \
  usr/share/man/man1/braid.1.gz usr/share/doc/braid/{changelog.gz,api.md} usr/share/{bash-completion/completions/braid,zsh/vendor-completions/_braid,fish/vendor_completions.d/braid.fish}; do
  [ -s "$folder/root/$file" ] || fail "it lacks /$file"
done
dpkg-deb --ctrl-tarfile "$package" | tar -xO ./conffiles | grep -qx /etc/braid/braid.yaml || fail "the configuration would be overwritten"
for library in libstdc++6 libcurl libsqlite3 libhiredis; do
  [[ $(dpkg-deb -f "$package" Depends) == *$library* ]] || fail "it does not say that it needs $library"
done
maintainer=$(dpkg-deb -f "$package" Maintainer)
[ "$(zcat "$folder/root/usr/share/doc/braid/changelog.gz" | sed -n 's/^ -- \(.*>\)  .*/\1/p' | head -n 1)" = "$maintainer" ] ||
  fail "its changelog is not of its maintainer, $maintainer"

if command -v lintian >/dev/null; then lintian --fail-on error "$package" || fail "lintian finds errors"; fi

command=$(sed -n 's/^ExecStart=//p' "$folder/root/usr/lib/systemd/system/braid.service")
[ "$command" = "/usr/bin/braid serve --config /etc/braid/braid.yaml" ] || fail "the unit starts '$command'"
user=$(sed -n 's/^User=//p' "$folder/root/usr/lib/systemd/system/braid.service")
grep -q "^u $user - " "$folder/root/usr/lib/sysusers.d/braid.conf" || fail "the unit's user '$user' is not the one that the package makes"
dpkg-deb --ctrl-tarfile "$package" | tar -xO ./postinst | grep -q 'systemd-sysusers braid.conf' || fail "its user is not made when it is installed"
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers --root="$folder/root" braid.conf
  grep -q "^$user:.*:/var/lib/braid:.*nologin$" "$folder/root/etc/passwd" || fail "systemd-sysusers does not make the user '$user'"
fi
answer=$("$folder/root/usr/bin/braid" run "What is 17 + 25?")
[ "$answer" = "17 + 25 = 42." ] || fail "the answer is '$answer'"
