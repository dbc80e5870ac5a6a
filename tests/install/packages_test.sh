#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# packages_test.sh BUILD SOURCE: makes the Debian packages of a build in BUILD/debian-test; debian_test.sh uses them. lintian
# finds no error in them, where it is installed.
set -euo pipefail
build=$1 source=$2
packages=$build/debian-test
rm -rf "$packages"
"$source/scripts/package" deb --build "$build" -o "$packages"
for package in "$packages"/*.deb; do
  [ "$(dpkg-deb -c "$package" | grep -vc ' root/root ')" = 0 ] || { echo "FAILED: $package has files of others than root"; exit 1; }
done
if command -v lintian > /dev/null; then
  lintian --allow-root --fail-on error "$packages"/*.deb > "$build/lintian.log" 2>&1 ||
    { grep "^E" "$build/lintian.log"; exit 1; }
else
  echo "lintian is not installed: the packages are not checked by it"
fi
