#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cost.sh TRACE_COST KIND LIMIT: instructions of a blocking call that nobody watches, counted by callgrind; a failure
# where they are more than LIMIT.
set -euo pipefail
unset NVTX_INJECTION64_PATH GDRX_TRACE GDRX_TUNE_FILE
export GDRX_MODULE_PATH=/nowhere # without a fabric to poll
count=480
collected=$(valgrind --tool=callgrind --collect-atstart=no --callgrind-out-file=/dev/null \
  "$1" "$count" "$2" 2>&1 | sed -n 's/.*Collected : *//p')
[ -n "$collected" ] || { echo "callgrind gave no count"; exit 1; }
each=$((collected / count))
echo "$each instructions a call, at most $3"
[ "$each" -gt 0 ] && [ "$each" -le "$3" ]
