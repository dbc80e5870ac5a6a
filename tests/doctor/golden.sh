#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# golden.sh GDRX FOLDER [--update]: snapshots of real hosts give what was read and found right once. --update
# writes the answers down: look at the difference before it is kept.
set -eu
gdrx=$1
folder=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
count=0
for snapshot in "$folder"/*.tar.gz; do
  [ -e "$snapshot" ] || continue
  count=$((count + 1))
  name=$(basename "$snapshot" .tar.gz)
  cd "$folder" # so that the source's name is the same everywhere
  { "$gdrx" topo "$name.tar.gz" && "$gdrx" topo "$name.tar.gz" --pci && "$gdrx" topo "$name.tar.gz" --map; } \
    > "$dir/$name.topo.txt"
  "$gdrx" doctor --snapshot "$name.tar.gz" > "$dir/$name.doctor.txt" 2> /dev/null || true
  for answer in topo doctor; do
    [ "${3:-}" = --update ] && cp "$dir/$name.$answer.txt" "$folder/"
    diff -u "$folder/$name.$answer.txt" "$dir/$name.$answer.txt" || failed=1
  done
done
[ "$count" -gt 0 ] || { echo 'no snapshot'; exit 1; }
was="as they were"
[ "${3:-}" = --update ] && was="written anew"
[ "$failed" = 0 ] && echo "$count hosts $was"
