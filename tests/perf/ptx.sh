#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ptx.sh PROGRAM PTXAS: the PTX that the driver will compile at run time assembles, without spills.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$1" | sed '/./,$!d' > "$dir/kernels.ptx"
for gpu in sm_75 sm_80 sm_90 sm_100; do
  "$2" -arch=$gpu -v "$dir/kernels.ptx" -o "$dir/kernels.cubin" > "$dir/log" 2>&1 || {
    cat "$dir/log"
    exit 1
  }
  if grep -E '[1-9][0-9]* bytes spill' "$dir/log"; then exit 1; fi
done
echo 'all well'
