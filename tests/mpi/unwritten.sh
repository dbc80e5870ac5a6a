#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A table that nobody can read is no success. Without mpirun, which would stand in between.
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
