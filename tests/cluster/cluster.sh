#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cluster.sh GDRX MPIRUN: gdrx doctor --cluster over mpirun (an empty word: none) and over a launcher.
set -eu
gdrx=$1
mpirun=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # a test container's user
die() {
  cat "$dir/out" "$dir/err"
  echo "cluster.sh: $*"
  exit 1
}
run() { rc=0; "$@" > "$dir/out" 2> "$dir/err" || rc=$?; }

"$gdrx" doctor --format json > "$dir/one.json" 2> /dev/null || true
cp "$dir/one.json" "$dir/two.json"
python3 - "$dir/one.json" "$dir/odd.json" << 'P'
import json, sys
report = json.load(open(sys.argv[1]))
for trait in report["traits"]:
    if trait["name"] == "kernel":
        trait["value"] = "5.4.0"
json.dump(report, open(sys.argv[2], "w"))
P
run "$gdrx" doctor --compare "$dir/one.json" "$dir/two.json"
[ "$rc" = 0 ] || die "equal hosts: status $rc"
run "$gdrx" doctor --compare "$dir/one.json" "$dir/two.json" "$dir/odd.json"
[ "$rc" = 3 ] || die "hosts that differ: status $rc"
grep -q 'the odd one out: odd' "$dir/out" || die 'the odd one is not named'
grep -q '5.4.0 *odd' "$dir/out" || die 'the value is not shown'

run "$gdrx" doctor --cluster --no-proof --hosts a,b --launcher 'env H={host}'
[ "$rc" = 0 ] || die "this host twice: status $rc"
grep -q '^2 hosts, 0 differences' "$dir/out" || die 'this host differs from itself'
run "$gdrx" doctor --cluster --hosts a,b --launcher 'false'
[ "$rc" = 1 ] || die "hosts without a report: status $rc"
run env -u OMPI_COMM_WORLD_SIZE -u PMI_SIZE -u PMIX_RANK -u SLURM_PROCID "$gdrx" doctor --cluster
[ "$rc" = 1 ] && grep -q 'mpirun' "$dir/err" || die 'without hosts there is no advice'
run "$gdrx" doctor --hosts a,b
[ "$rc" = 2 ] || die '--hosts without --cluster was taken'

if [ -n "$mpirun" ]; then
  run timeout 100 "$mpirun" --oversubscribe -np 3 "$gdrx" doctor --cluster --no-proof
  [ "$rc" = 0 ] || die "over mpirun: status $rc"
  grep -q '^1 hosts, 0 differences' "$dir/out" || die 'ranks of one host are not one host'
fi
echo 'all well'
