#!/bin/sh
# Installs the locked packages, unless they are there already.
set -e
cd "$(dirname "$0")"
if [ -x node_modules/.bin/node ] && cmp -s package-lock.json node_modules/.installed-lock.json; then exit 0; fi
npm ci --no-audit --no-fund --no-update-notifier
node_modules/.bin/node --version
cp package-lock.json node_modules/.installed-lock.json
