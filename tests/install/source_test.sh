#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# source_test.sh SOURCE [all]: the source tarball is configured where git is not, knows its commit, and builds: a few
# objects, or all.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "FAILED: $*"; exit 1; }
commit=$(git -C "$1" rev-parse HEAD 2> /dev/null) || { echo "skip: no checkout of git"; exit 77; }
"$1/scripts/package" source -o "$work" > "$work/log" 2>&1 || wrong "$(cat "$work/log")"
tar -C "$work" -xzf "$work"/gdrx-*.tar.gz
tree=$(echo "$work"/gdrx-*/)
[ ! -e "$tree/.git" ] || wrong "it brings a .git"
# A git that fails, before the one that does not.
mkdir "$work/bin"
printf '#!/bin/sh\nexit 128\n' > "$work/bin/git"
chmod +x "$work/bin/git"
export PATH=$work/bin:$PATH
cmake -DSOURCE="$tree" -DHEADER="$work/commit.h" -P "$tree/cmake/GdrxCommit.cmake"
grep -q "\"${commit:0:12}\"" "$work/commit.h" || wrong "the commit is $(cat "$work/commit.h"), not $commit"
cmake -S "$tree" -B "$work/build" -G Ninja -DGDRX_CUDA=OFF -DGDRX_PRECOMPILE=OFF -Wno-dev > "$work/log" 2>&1 || wrong "$(tail "$work/log")"
objects=(all)
[ "${2:-}" = all ] || mapfile -t objects < <(ninja -C "$work/build" -t targets all | grep -oE '^[^:]*/(types|output)\.cpp\.o')
[ ${#objects[@]} -gt 0 ] || wrong "there is nothing to build"
CCACHE_BASEDIR=$work ninja -j2 -C "$work/build" "${objects[@]}" > "$work/log" 2>&1 || wrong "$(tail "$work/log")"
python3 "$tree/tests/structure/check_licences.py" "$tree"
