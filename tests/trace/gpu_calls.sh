#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpu_calls.sh ENV_FILE PROGRAM FOLDERS: when calls ran on one host's GPUs, by the trace of emulated ones.
set -euo pipefail
# shellcheck disable=SC1090
. "$1" > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(dirname "$(readlink -f "$0")")
export GDRX_MODULE_PATH=$3
for mode in blocking stream graph; do
  for kernel in one-shot ring; do
    GDRX_TRACE="$work/$mode-$kernel-%r.json" mpirun -np 2 "$2" --memory cuda --mode "$mode" --algo "$kernel" \
      -b 1K -e 4K -f 4 -n 1 -w 1
    python3 "$here/check_gpu_calls.py" "$mode" "$kernel" 1024,4096 "$work/$mode-$kernel"-?.json
  done
done
