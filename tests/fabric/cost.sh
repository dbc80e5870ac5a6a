#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Instructions of gdrx's own on the hot path, counted by callgrind: a table, and a failure where a
# step takes more than its limit. Usage: cost.sh VERBS_COST
set -euo pipefail
count=500 # each is as the one before
fails=0
printf '%-28s %12s %8s\n' step instructions limit
while read -r step bytes limit name; do
  collected=$(valgrind --tool=callgrind --collect-atstart=no --instr-atstart=no \
    --callgrind-out-file=/dev/null "$1" "$step" "$bytes" "$count" 2>&1 | sed -n 's/.*Collected : *//p')
  [ -n "$collected" ] || { echo "no count of $name"; exit 1; }
  each=$((collected / count))
  printf '%-28s %12d %8d\n' "$name" "$each" "$limit"
  [ "$each" -gt 0 ] && [ "$each" -le "$limit" ] || fails=$((fails + 1))
done <<STEPS
idle 8 450 idle poll
crowd 8 450 idle poll, 1000 peers
post 8 900 post, 8 bytes
receive 8 1100 receive, 8 bytes
complete 8 700 complete, 8 bytes
post 65536 1500 post, 64 KiB
receive 65536 900 receive, 64 KiB
complete 65536 700 complete, 64 KiB
STEPS
exit "$fails"
