#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# matrix.sh GDRX MPIRUN: gdrx perf --matrix of three processes, of which two say that they are on one host. With no
# RDMA here each pair is named as failed; the file is taken by gdrx topo --matrix all the same.
set -eu
gdrx=$1
mpirun=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # a test container's user
die() {
  cat "$dir/matrix.json" "$dir/err"
  echo "matrix.sh: $*"
  exit 1
}
rc=0
"$mpirun" --oversubscribe -np 2 env GDRX_HOST_ID=east "$gdrx" perf --matrix -s 64K -n 20 --format json : \
  -np 1 env GDRX_HOST_ID='we;st' "$gdrx" perf --matrix -s 64K -n 20 --format json \
  > "$dir/matrix.json" 2> "$dir/err" < /dev/null || rc=$?
grep -q '^round 3 of 3' "$dir/err" || die 'no progress is told'
[ "$rc" = 0 ] || grep -q 'some pairs could not be measured' "$dir/err" || die "status $rc"
python3 - "$dir/matrix.json" << 'P' || die 'it is not the matrix of three hosts'
import json, sys
matrix = json.load(open(sys.argv[1]))
assert matrix["hosts"] == ["east", "east:2", "we-st:1"], matrix["hosts"]
pairs = {(pair["from"], pair["to"]) for pair in matrix["pairs"]}
assert len(pairs) == len(matrix["pairs"]) == 6
assert all(pair.get("problem") or pair["gigabits"] > 0 for pair in matrix["pairs"])
P
"$gdrx" topo --cluster '3 hosts x 2 L40S' --place --matrix "$dir/matrix.json" > "$dir/out" 2>> "$dir/err" || die 'topo refuses it'
rc=0
"$gdrx" topo --cluster '3 hosts x 2 L40S' --place --matrix "$dir/matrix.json" --format hostfile > "$dir/ordered" 2> "$dir/why" || rc=$?
[ "$rc" = 1 ] || die "a hostfile of one host's processes: status $rc"
grep -q "east:2 is no host's name\|we-st:1 is no host's name" "$dir/why" || die 'no host is named'
grep -q 'east.*we-st\|we-st.*east' "$dir/out" || die 'the ring is not shown'

rc=0
"$mpirun" -np 1 "$gdrx" perf --matrix > "$dir/out" 2> "$dir/err" < /dev/null || rc=$?
[ "$rc" = 1 ] || die "one process: status $rc"
grep -q 'one process: start one on each host' "$dir/err" || die 'one process is a matrix'

# The other process takes no part. Nobody waits until the watch ends by itself.
rc=0
# shellcheck disable=SC2016 # the inner shell's
"$mpirun" --oversubscribe -np 1 sh -c 'echo $$ > "$1/pid"; exec "$2" perf --matrix' sh "$dir" "$gdrx" : -np 1 sleep 30 \
  > "$dir/out" 2> "$dir/err" < /dev/null &
started=$!
for _ in $(seq 100); do
  [ ! -s "$dir/pid" ] || ! grep -q libmpi "/proc/$(cat "$dir/pid")/maps" || break # the watch is set before it is loaded
  sleep 0.1
done
kill -ALRM "$(cat "$dir/pid")"
wait "$started" || rc=$?
[ "$rc" != 0 ] || die 'a job with a stopped process is fine'
grep -q 'MPI_Init: the others say nothing.*look for a stopped gdrx' "$dir/err" || die 'a stopped process is not told'
