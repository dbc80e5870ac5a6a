#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trace.sh ENV_FILE: GDRX_TRACE in a run of allreduce_test, and what its files say.
set -euo pipefail
# shellcheck disable=SC1090
. "$1" > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpirun -np 3 -x GDRX_TRACE="$work/t%r.json" allreduce_test --algo ring,two-shot -b 1M -e 1M -n 1 -w 1
python3 "$(dirname "$(readlink -f "$0")")/check_trace.py" "$work" 3
