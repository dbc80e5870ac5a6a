#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# golden.sh GDRX [--update]: each described machine and cluster is placed as it was when somebody compared that with
# the machine's description, and has the graphs for NCCL that it had. --update writes them down: compare before they are kept.
set -eu
gdrx=$1
here=$(dirname "$(readlink -f "$0")")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/machines"
python3 "$here/machines.py" "$dir/machines"
mkdir "$dir/matrices"
python3 "$here/matrices.py" "$dir/matrices"
cd "$dir/machines" # so that a source's name is the same everywhere
failed=0 count=0
# shown NAME ARGUMENT...
shown() {
  name=$1; shift
  count=$((count + 1))
  "$gdrx" topo "$@" > "$dir/$name.txt" || { echo "gdrx topo $*: $?"; exit 1; }
  [ "$update" = 0 ] || cp "$dir/$name.txt" "$here/golden/"
  diff -u "$here/golden/$name.txt" "$dir/$name.txt" || failed=1
}
placed() {
  name=$1; shift
  shown "$name" --place "$@"
}
update=0
[ "${2:-}" != --update ] || update=1
for machine in *; do placed "${machine%.xml}" "$machine" --predict; done
placed cluster-h200 --cluster '2 hosts x 8 H200, one 400 Gb/s NIC a GPU' --predict
placed cluster-a100 --cluster '4 hosts x 4 A100, 2 200 Gb/s NICs' --predict
placed cluster-uneven --cluster '3 hosts x 2 L40S, one 100 Gb/s NIC' --ranks 5 --predict
placed dgx-a100-2-ranks dgx-a100 --ranks 2
placed pcie-6-ranks pcie-2-sockets --ranks 6
placed pcie-masked pcie-2-sockets --cpus 0-3 --gpus 3,1
placed laptop-20-ranks laptop --ranks 20
cd "$dir/matrices"
eight='8 hosts x 8 H200, one 400 Gb/s NIC a GPU'
placed ring-cable --cluster "$eight" --ranks 16 --matrix cable.json
placed ring-leaves --cluster "$eight" --ranks 16 --matrix leaves.json
placed ring-leaves-hosts --cluster "$eight" --matrix leaves.json --format hostfile
placed ring-slow-host --cluster '3 hosts x 2 L40S, one 100 Gb/s NIC' --matrix slow-host.json
placed ring-fewer --cluster '6 hosts x 2 L40S, one 100 Gb/s NIC' --matrix cable.json
cd "$dir/machines"
for format in json rankfile appfile srun torchrun k8s; do
  placed "hgx-h200-4-nics.$format" hgx-h200-4-nics --format "$format"
done
unset NCCL_MNNVL_ENABLE
rc=0
words=$("$gdrx" topo gb200-tray --format nccl-graph 2>&1) || rc=$?
case "$rc $words" in 1*NCCL_MNNVL_ENABLE=0*) ;; *) echo "gb200-tray has a graph: $rc $words"; exit 1 ;; esac
shown nccl-graph-gb200-tray-alone gb200-tray --format nccl-graph --one-host
export NCCL_MNNVL_ENABLE=0
for machine in dgx-a100 dgx-h100 hgx-h200-4-nics gb200-tray gh200 pcie-2-sockets cloud-flat cloud-file.xml workstation; do
  shown "nccl-graph-${machine%.xml}" "$machine" --format nccl-graph
  shown "nccl-beside-${machine%.xml}" "$machine" --explain-nccl
done
shown nccl-beside-dgx-a100-alone dgx-a100 --explain-nccl --one-host
shown nccl-graph-dgx-a100-alone dgx-a100 --format nccl-graph --one-host
"$gdrx" topo dgx-h100 --format nccl-graph > "$dir/graph.xml"
shown nccl-beside-file dgx-h100 --explain-nccl --nccl-graph "$dir/graph.xml"
was="as they were"
[ "$update" = 1 ] && was="written anew"
[ "$failed" = 0 ] && echo "$count answers $was"
