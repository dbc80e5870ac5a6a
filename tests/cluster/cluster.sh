#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cluster.sh GDRX MPIRUN CORPUS: gdrx doctor --cluster over mpirun (an empty word: none) and over a launcher.
set -eu
gdrx=$1
mpirun=$2
corpus=$3
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

# Three hosts, as trees of files; the middle one has older firmware and a small MTU.
for host in n1 n2 n3; do
  mkdir "$dir/$host"
  tar -C "$dir/$host" -xf "$corpus/snapshot/host.tar"
  echo 28.43.1014 > "$dir/$host/sys/class/infiniband/mlx5_0/fw_ver"
  echo 9000 > "$dir/$host/sys/class/net/eth1/mtu"
done
cat > "$dir/launch" << 'L'
#!/bin/sh
trees=$1 host=$2 gdrx=$3
shift 3
exec "$gdrx" "$@" --root "$trees/$host"
L
chmod +x "$dir/launch"
three_alike() {
  [ "$rc" = 0 ] || die "$1: three equal hosts: status $rc"
  grep -q '^3 hosts, 0 differences' "$dir/out" || die "$1: three equal hosts differ"
}
names_the_middle_one() {
  [ "$rc" = 3 ] || die "$1: a host that differs: status $rc"
  grep -q '^the odd one out: n2$' "$dir/out" || die "$1: the odd one is not named"
  grep -q '28.39.1002  *n2$' "$dir/out" || die "$1: its firmware is not shown"
  grep -q '28.43.1014  *n1, n3$' "$dir/out" || die "$1: the others are not shown"
  grep -A9 '^findings that differ' "$dir/out" | grep -q 'SLOW  *n2$' || die "$1: its MTU is no finding"
}
break_the_middle_one() {
  echo 28.39.1002 > "$dir/n2/sys/class/infiniband/mlx5_0/fw_ver"
  echo 1500 > "$dir/n2/sys/class/net/eth1/mtu"
}
mend_the_middle_one() {
  cp "$dir/n1/sys/class/infiniband/mlx5_0/fw_ver" "$dir/n2/sys/class/infiniband/mlx5_0/"
  cp "$dir/n1/sys/class/net/eth1/mtu" "$dir/n2/sys/class/net/eth1/"
}
by_launcher() {
  run "$gdrx" doctor --cluster --no-proof --hosts n1,n2,n3 --launcher "$dir/launch $dir {host}"
}
by_launcher
three_alike launcher
break_the_middle_one
by_launcher
names_the_middle_one launcher
for host in n1 n2 n3; do
  "$gdrx" doctor --root "$dir/$host" --format json > "$dir/$host.json" 2> "$dir/err" || true
done
run "$gdrx" doctor --compare "$dir/n1.json" "$dir/n2.json" "$dir/n3.json"
names_the_middle_one 'saved reports'

if [ -n "$mpirun" ]; then
  # Ranks that believe to be on three hosts, each with its own tree.
  by_mpirun() {
    run timeout 100 "$mpirun" --oversubscribe \
      -np 1 -x GDRX_HOST_ID=n1 "$gdrx" doctor --cluster --root "$dir/n1" \
      : -np 1 -x GDRX_HOST_ID=n2 "$gdrx" doctor --cluster --root "$dir/n2" \
      : -np 1 -x GDRX_HOST_ID=n3 "$gdrx" doctor --cluster --root "$dir/n3"
  }
  by_mpirun
  names_the_middle_one mpirun
  mend_the_middle_one
  by_mpirun
  three_alike mpirun
  run timeout 100 "$mpirun" --oversubscribe -np 3 "$gdrx" doctor --cluster --no-proof
  [ "$rc" = 0 ] || die "over mpirun: status $rc"
  grep -q '^1 hosts, 0 differences' "$dir/out" || die 'ranks of one host are not one host'
fi
echo 'all well'
