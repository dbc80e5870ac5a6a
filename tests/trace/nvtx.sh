#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nvtx.sh ENV_FILE INJECTION: a run of allreduce_test under a tool that NVTX loads by its own rule.
set -euo pipefail
# shellcheck disable=SC1090
. "$1" > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# GDRX_CMA=0: the same steps wherever this runs, allowed to write other processes or not.
mpirun -np 2 -x GDRX_CMA=0 -x NVTX_INJECTION64_PATH="$2" -x GDRX_TEST_NVTX="$work/heard" \
  allreduce_test --algo ring,two-shot -b 1M -e 1M -n 1 -w 0
python3 "$(dirname "$(readlink -f "$0")")/check_nvtx.py" "$work"/heard.*
