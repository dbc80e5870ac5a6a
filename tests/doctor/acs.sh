#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# acs.sh SCRIPT: disable-acs.sh on a tree and a setpci of our own: dry run, change, undo, refusal.
set -eu
script=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
add() { # bus class vendor device, the register or '-'
  mkdir -p "$dir/sys/bus/pci/devices/$1" "$dir/acs"
  echo "$2" > "$dir/sys/bus/pci/devices/$1/class"
  echo "$3" > "$dir/sys/bus/pci/devices/$1/vendor"
  echo "$4" > "$dir/sys/bus/pci/devices/$1/device"
  [ "$5" = - ] || echo "$5" > "$dir/acs/$1"
}
add 0000:10:01.0 0x060400 0x8086 0x0001 001d   # a root port
add 0000:12:00.0 0x060400 0x1000 0xc030 005f   # Broadcom
add 0000:22:00.0 0x060400 0x11f8 0x4000 001d   # Microchip
add 0000:22:01.0 0x060400 0x10b5 0x8796 0000   # PLX, already off
add 0000:00:1c.0 0x060400 0x8086 0x0002 -      # has none
add 0000:13:00.0 0x030200 0x10de 0x2335 001d   # no bridge
cat > "$dir/setpci" <<'S'
#!/bin/sh
file=$ACS_DIR/$2
[ -e "$file" ] || exit 1
case $3 in *=*) echo "${3#*=}" > "$file" ;; *) cat "$file" ;; esac
S
chmod +x "$dir/setpci"
: > "$dir/cpuinfo"
export ACS_DIR="$dir/acs" GDRX_ACS_SYS="$dir/sys" GDRX_ACS_SETPCI="$dir/setpci"
export GDRX_ACS_CPUINFO="$dir/cpuinfo"
die() { echo "$*"; exit 1; }

out=$("$script" --undo "$dir/undo")
echo "$out"
case $out in *'4 bridges with ACS, 3 of them with it on'*) ;; *) die 'wrong count' ;; esac
[ "$(cat "$dir/acs/0000:10:01.0")" = 001d ] || die 'the dry run changed something'
[ ! -e "$dir/undo" ] || die 'the dry run wrote an undo file'

"$script" --apply --only 0000:12 --undo "$dir/undo"
[ "$(cat "$dir/acs/0000:12:00.0")" = 0000 ] || die 'not changed'
[ "$(cat "$dir/acs/0000:22:00.0")" = 001d ] || die '--only did not hold'
PATH="$dir:$PATH" sh "$dir/undo"
[ "$(cat "$dir/acs/0000:12:00.0")" = 005f ] || die 'not undone'

"$script" --apply --undo "$dir/undo"
[ "$(cat "$dir/acs/0000:13:00.0")" = 001d ] || die 'a device that is no bridge was changed'
[ "$(cat "$dir/acs"/0000:[12]?:0?.0 | grep -vc 0000)" = 1 ] || die 'a bridge was left on'

echo 'flags : fpu hypervisor' > "$dir/cpuinfo"
if "$script" --apply --undo "$dir/undo" 2> "$dir/err"; then die 'a virtual machine was not refused'; fi
grep -q 'virtual machine' "$dir/err" || die 'no reason given'
: > "$dir/cpuinfo"
add 0000:15:00.0 0x080100 0x15b3 0x2100 -
if "$script" 2> "$dir/err"; then die 'a Direct NIC platform was not refused'; fi
if "$script" --bad 2> "$dir/err"; then die 'a bad option was taken'; else [ $? = 2 ] || die 'status'; fi
"$script" --help | grep -q 'Do not use it' || die 'no help'
echo 'all well'
