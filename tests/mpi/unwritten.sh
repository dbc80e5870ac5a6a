#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A table that nobody can read is no success, and a file is tried before the work. Without mpirun, which would stand in between.
set -uo pipefail
run=(allreduce_test -e 8 -n 1 -w 0)

# fails STATUS WORDS command...: with exactly this status, and the words on stderr
fails() {
  local status=$1 words=$2 got=0 said
  shift 2
  said=$("$@" 2>&1 > /dev/full) || got=$?
  [ "$got" = "$status" ] || { echo "$*: status $got, not $status"; exit 1; }
  grep -q "$words" <<< "$said" || { echo "$*: no '$words' in: $said"; exit 1; }
}
fails 3 "cannot write to stdout" "${run[@]}"
fails 3 "cannot write to stdout" "${run[@]}" --explain
fails 3 "cannot write to stdout" allreduce_test --help
fails 2 "write /nowhere/x" "${run[@]}" --json /nowhere/x
fails 2 "write /nowhere/x" mpirun -np 2 net_perf --transport ucx --out_json_file /nowhere/x
kept=$(mktemp)
trap 'rm -f "$kept"' EXIT
echo kept > "$kept"
fails 3 "" env GDRX_TUNE_FILE=/nowhere "${run[@]}" --json "$kept"
grep -qx kept "$kept" || { echo "a run that failed has emptied its file"; exit 1; }
