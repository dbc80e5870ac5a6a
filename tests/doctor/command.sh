#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# command.sh GDRX: gdrx doctor on this machine, whatever it is: statuses, files, the gate.
set -eu
gdrx=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() { echo "$*"; exit 1; }
status() { rc=0; "$@" > "$dir/out" 2> "$dir/err" || rc=$?; }
one_line() {
  if [ "$rc" = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ]; then return; fi
  cat "$dir/err"
  die "$1: status $rc"
}

status "$gdrx" doctor --format json
case $rc in 0 | 1 | 3) ;; *) cat "$dir/err"; die "status $rc" ;; esac
cp "$dir/out" "$dir/good.json"
grep -q '"schema": 1' "$dir/good.json" || die 'no report'
if grep -q '"worst": "FAIL"' "$dir/good.json"; then want=1
elif grep -q '"worst": "SLOW"' "$dir/good.json"; then want=3
else want=0; fi
[ "$rc" = "$want" ] || die "status $rc is not that of the worst finding, $want"

status "$gdrx" doctor --expect "$dir/good.json"
[ "$rc" = 0 ] || { cat "$dir/err"; die 'this machine is worse than itself'; }
sed 's/"severity": "[A-Z]*"/"severity": "OK"/' "$dir/good.json" > "$dir/best.json"
status "$gdrx" doctor --expect "$dir/best.json"
[ "$want" = 0 ] || { [ "$rc" = 1 ] && grep -q 'was OK, is' "$dir/err"; } || die 'the gate is open'

status "$gdrx" doctor --fix-script "$dir/fix.sh"
sh -n "$dir/fix.sh" || die 'the script is no shell'
sh "$dir/fix.sh" | grep -q 'only with --apply' || die 'the script ran'
if grep -q "$(printf '\033')" "$dir/out"; then die 'colours in a file'; fi

for bad in /nowhere "$dir"; do
  status "$gdrx" doctor --root "$bad"
  one_line "root $bad"
done
for bad in /nowhere "$dir" /dev/null "$dir/fix.sh"; do
  status "$gdrx" doctor --expect "$bad"
  one_line "expect $bad"
done
status "$gdrx" doctor --fix-script /nowhere/fix.sh
grep -q 'write /nowhere/fix.sh' "$dir/err" || die 'an unwritable script is not named'
status "$gdrx" doctor --format pdf
[ "$rc" = 2 ] || die 'a bad format was taken'
"$gdrx" doctor --help | grep -q -e '--expect good.json' || die 'no help'
echo 'all well'
