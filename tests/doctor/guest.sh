#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guest.sh GDRX CLUSTER: gdrx doctor on real soft-RoCE, in a guest of scripts/softroce-cluster: what
# it says of a good guest, and of one that is broken in five ways. By hand: it takes minutes.
set -eu
gdrx=$(realpath "$1")
cluster="$2 --name doctor-guest-$$"
dir=$(mktemp -d)
trap '$cluster down > /dev/null 2>&1; rm -rf "$dir"' EXIT
die() {
  cat "$dir/out"
  echo "guest.sh: $*"
  exit 1
}
in_guest() { $cluster run --deadline 120 -- "$@"; }
doctor() { in_guest "$gdrx" doctor > "$dir/out" 2>&1 || true; }
# id severity words: the check's lines have them
says() {
  grep -A4 -E "^$2 +$1( |:|$)" "$dir/out" | tr -s ' \n' ' ' > "$dir/check"
  grep -q -e "$3" "$dir/check" || die "$1 is not $2 with '$3'"
  echo "ok      $4"
}

$cluster up -n 1 --rails 2
doctor
says rdma-loopback OK 'rxe0 port 1 host memory: written, read back and equal' 'RDMA is proven'
says roce-gid OK 'RoCE v2, IPv4' 'the GID is judged'
says port-mtu OK '9000 bytes' 'the MTU is judged'
says dmabuf-verbs WARN 'Operation not supported' 'soft-RoCE has no dma-buf'
says rdma-nic WARN 'only soft-RoCE' 'it is no real NIC'

in_guest ip link set rail0 mtu 576
doctor
says port-mtu SLOW '576' 'an MTU of 576 is slow'
grep -q 'ip link set rail0 mtu 9000' "$dir/out" || die 'no fix for the MTU'
in_guest ip link set rail0 mtu 9000

in_guest ip link set rail0 down
doctor
says port-state WARN 'rxe0 port 1' 'a port that is down is found'
grep -q 'ip link set rail0 up' "$dir/out" || die 'no fix for the port'
in_guest ip link set rail0 up

in_guest sh -c "ulimit -l 64; exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all $gdrx doctor --no-proof" > "$dir/out" 2>&1 || true
says memlock FAIL '64 KiB' 'an unprivileged user with 64 KiB of locked memory'
in_guest sh -c "ulimit -l 64; exec $gdrx doctor --no-proof" > "$dir/out" 2>&1 || true
says memlock OK 'IPC_LOCK' 'root, told why it does not matter'

in_guest sh -c 'mv /dev/infiniband/uverbs0 /dev/infiniband/away'
doctor
says uverbs-nodes FAIL 'uverbs0 is missing' 'a node that is not there'
in_guest sh -c 'mv /dev/infiniband/away /dev/infiniband/uverbs0'

in_guest ip addr flush dev rail1
doctor
says roce-gid WARN 'link-local' 'an interface without an address'
echo 'all well'
