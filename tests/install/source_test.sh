#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# source_test.sh SOURCE: the source tarball is configured and built where git is not, and knows its commit.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "FAILED: $*"; exit 1; }
commit=$(git -C "$1" rev-parse HEAD 2> /dev/null) || { echo "skipped: no checkout of git"; exit 77; }
"$1/scripts/package" source -o "$work" > "$work/log" 2>&1 || wrong "$(cat "$work/log")"
tar -C "$work" -xzf "$work"/gdrx-*.tar.gz
tree=$(echo "$work"/gdrx-*/)
[ ! -e "$tree/.git" ] || wrong "it brings a .git"
# A git that fails, before the one that does not.
mkdir "$work/bin"
printf '#!/bin/sh\nexit 128\n' > "$work/bin/git"
chmod +x "$work/bin/git"
export PATH=$work/bin:$PATH
cmake -DSOURCE="$tree" -DHEADER="$work/commit.h" -P "$tree/scripts/cmake/GdrxCommit.cmake"
grep -q "\"${commit:0:12}\"" "$work/commit.h" || wrong "the commit is $(cat "$work/commit.h"), not $commit"
cmake -S "$tree" -B "$work/build" -G Ninja -DGDRX_CUDA=OFF -Wno-dev > "$work/log" 2>&1 || wrong "$(tail "$work/log")"
cmake --build "$work/build" --target gdrx_secure > "$work/log" 2>&1 || wrong "$(tail "$work/log")"
python3 "$tree/tests/structure/check_licences.py" "$tree"
