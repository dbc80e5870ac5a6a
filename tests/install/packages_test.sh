#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# packages_test.sh BUILD SOURCE: makes the Debian packages of a build, and tries them: see debian_test.sh. lintian finds no
# error in them, where it is installed.
set -euo pipefail
build=$1 source=$2
command -v debootstrap > /dev/null || { echo "skip: debootstrap is not installed"; exit 77; }
packages=$build/debian-test
rm -rf "$packages"
"$source/scripts/package" deb --build "$build" -o "$packages"
if command -v lintian > /dev/null; then
  lintian --allow-root --fail-on error "$packages"/*.deb > "$build/lintian.log" 2>&1 ||
    { grep "^E" "$build/lintian.log"; exit 1; }
else
  echo "lintian is not installed: the packages are not checked by it"
fi
exec "$(dirname "$0")/debian_test.sh" "$packages" "$source/examples" "$(dirname "$build")/roots"
