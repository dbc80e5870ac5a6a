#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# snapshot.sh GDRX: this machine as a snapshot gives the answers of this machine.
set -eu
gdrx=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() { echo "$*"; exit 1; }
refused() { # words, then the command: status 1 and one line with them
  words=$1
  shift
  if "$@" > /dev/null 2> "$dir/err"; then die "$*: taken"; fi
  [ "$(wc -l < "$dir/err")" = 1 ] || die "$*: more than a line"
  grep -q -e "$words" "$dir/err" || { cat "$dir/err"; die "$*: does not say $words"; }
}

"$gdrx" snapshot "$dir/host.tgz" | grep -q 'were replaced' || die 'no snapshot'
[ "$(stat -c %s "$dir/host.tgz")" -lt 2000000 ] || die 'not small'
tar tzf "$dir/host.tgz" | grep -q gdrx/calls || die 'tar does not read it'
name=$(uname -n)
if tar xzOf "$dir/host.tgz" | grep -a -q -w -e "$name"; then die "$name is in it"; fi

# Memory of GPUs and registered descriptors may differ from one moment to the next; what is wrong
# does not.
"$gdrx" doctor --format json > "$dir/live.json" || true
"$gdrx" doctor --snapshot "$dir/host.tgz" --format json > "$dir/saved.json" || true
for file in live saved; do
  grep -E '"(id|severity|subject)":' "$dir/$file.json" > "$dir/$file" || die 'no report'
done
diff "$dir/live" "$dir/saved" || die 'the snapshot is judged in another way than its host'
"$gdrx" doctor --snapshot "$dir/host.tgz" --expect "$dir/live.json" > /dev/null || die 'the gate'
refused 'for-other-host' "$gdrx" doctor --snapshot "$dir/host.tgz" --fix-script "$dir/fix.sh"
[ ! -e "$dir/fix.sh" ] || die 'a script for another host was written'
"$gdrx" doctor --snapshot "$dir/host.tgz" --fix-script "$dir/fix.sh" --for-other-host > /dev/null 2>&1 || true
grep -q 'for another host' "$dir/fix.sh" || die 'no script for another host, or it does not say so'
"$gdrx" topo --pci 2> /dev/null | grep -v '^no GPU' > "$dir/live" || true
"$gdrx" topo "$dir/host.tgz" --pci | grep -v '^no GPU' > "$dir/saved" || true
diff "$dir/live" "$dir/saved" || die 'another topology'

head -c 300 "$dir/host.tgz" > "$dir/cut.tgz"
refused 'cut off' "$gdrx" topo "$dir/cut.tgz"
refused 'cut off' "$gdrx" doctor --snapshot "$dir/cut.tgz"
mkdir "$dir/sys" && touch "$dir/sys/x"
tar -C "$dir/sys" -cPf "$dir/out.tar" ../sys/x
refused 'leads out' "$gdrx" topo "$dir/out.tar"
refused '/nowhere/x' "$gdrx" snapshot /nowhere/x
refused 'no sys folder' "$gdrx" snapshot --root /nowhere "$dir/none.tgz"
refused 'empty' "$gdrx" doctor --snapshot /dev/null
echo 'all well'
