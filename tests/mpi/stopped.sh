#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stopped.sh SECONDS: a rank that is stopped for so long and resumed is slow, not dead: the run ends
# right, with no word of a death.
set -uo pipefail
out=$(mktemp)
trap 'rm -f "$out"; kill -9 %1 2> /dev/null' EXIT
mpirun -np 4 allreduce_test -b 1M -e 1M --algo all -n 800 -w 0 > "$out" 2>&1 &
launcher=$!
victim=
for _ in $(seq 200); do
  sleep 0.05
  grep -q algbw "$out" && sleep 1 && victim=$(pgrep -P "$launcher" allreduce_test | tail -1) && break
done
[ -n "$victim" ] || { echo "no rank was found at work"; cat "$out"; exit 1; }
kill -STOP "$victim" || exit 1
sleep "$1"
kill -0 "$launcher" 2> /dev/null || { echo "the run ended while a rank was stopped"; cat "$out"; exit 1; }
kill -CONT "$victim"
wait "$launcher" || { echo "mpirun failed"; cat "$out"; exit 1; }
grep -q "# OK" "$out" && ! grep -E "died|unreachable|gdrx:" "$out"
