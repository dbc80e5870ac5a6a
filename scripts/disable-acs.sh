#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# disable-acs.sh: turns off ACS redirection on PCI bridges, so that a GPU and a NIC below one switch
# reach each other through it. Shows what it would do; --apply does it.
#
#   disable-acs.sh                    what would change
#   disable-acs.sh --apply            change it, and write a script that undoes it
#   disable-acs.sh --only 0000:3a     bridges whose address begins so (one host bridge, one switch)
#
# All bridges of all vendors: the register is found by setpci, which walks the list of capabilities
# (ECAP_ACS); its place differs between devices. Lost at a reboot.
#
# Do not use it
#  - in a virtual machine: peer traffic there needs ACS together with ATS;
#  - on a host that passes devices to virtual machines: ACS is what keeps them apart;
#  - on Direct NIC platforms (ConnectX-8 with Data Direct, Grace): they need certain bits set;
#    rdma_topo of rdma-core checks and sets them.
# The first and the last are refused without --force.
set -eu

apply=no force=no only='' undo=/var/tmp/gdrx-acs-undo.sh
sys=${GDRX_ACS_SYS:-/sys}              # for tests: another tree
cpuinfo=${GDRX_ACS_CPUINFO:-/proc/cpuinfo}
setpci=${GDRX_ACS_SETPCI:-setpci}

usage() {
  sed -n '3,/^set -eu/{/^set/d;s/^# \{0,1\}//;p;}' "$0"
  echo "  --undo FILE   where the undo script goes ($undo)"
  echo "  --force       although this is a place where ACS is needed"
}
die() { echo "disable-acs: $*" >&2; exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
    --apply) apply=yes ;;
    --force) force=yes ;;
    --undo) [ $# -gt 1 ] || { usage >&2; exit 2; }; undo=$2; shift ;;
    --only) [ $# -gt 1 ] || { usage >&2; exit 2; }; only=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "disable-acs: unknown option $1; see --help" >&2; exit 2 ;;
  esac
  shift
done

# Reasons to leave ACS alone.
reason=''
if grep -q '^flags.* hypervisor' "$cpuinfo" 2>/dev/null; then
  reason='this is a virtual machine'
fi
for device in "$sys"/bus/pci/devices/*; do
  [ -e "$device/vendor" ] || continue
  read -r vendor < "$device/vendor"
  read -r id < "$device/device" || id=
  [ "$vendor $id" != '0x15b3 0x2100' ] || reason='this is a Direct NIC platform (Data Direct)'
done
if [ -n "$reason" ] && [ "$force" = no ]; then
  die "$reason: ACS is needed here, nothing was changed (--force overrides; rdma_topo check tells)"
fi
command -v "$setpci" >/dev/null || die 'setpci is missing: install pciutils'
[ -n "${GDRX_ACS_SETPCI:-}" ] || [ "$(id -u)" = 0 ] || die 'only root can read and change the register'

# Control register: 1 source validation, 4 request, 8 completion redirect, 10 upstream forwarding,
# 20 egress control, 40 direct translated. All off.
work=$(mktemp)
trap 'rm -f "$work"' EXIT
changed=0 seen=0 failed=0
for device in "$sys"/bus/pci/devices/*; do
  [ -e "$device/class" ] || continue
  read -r class < "$device/class"
  case $class in 0x0604*) ;; *) continue ;; esac
  bus=${device##*/}
  case $bus in "$only"*) ;; *) continue ;; esac
  # Fails where the bridge has no such capability.
  value=$("$setpci" -s "$bus" ECAP_ACS+6.w 2>/dev/null) || continue
  case $value in *[!0-9a-fA-F]* | '') continue ;; esac
  seen=$((seen + 1))
  [ "$value" != 0000 ] || continue
  changed=$((changed + 1))
  if [ "$apply" = no ]; then
    echo "would run: setpci -s $bus ECAP_ACS+6.w=0000   (now $value)"
    continue
  fi
  # Written before the change: an interrupted run can be undone too.
  if [ "$changed" = 1 ]; then
    [ ! -e "$undo" ] || mv "$undo" "$undo.before"  # of an earlier run
    echo '#!/bin/sh' > "$work"
  fi
  echo "setpci -s $bus ECAP_ACS+6.w=$value" >> "$work"
  cp "$work" "$undo" && chmod 755 "$undo"
  "$setpci" -s "$bus" ECAP_ACS+6.w=0000
  now=$("$setpci" -s "$bus" ECAP_ACS+6.w)
  if [ "$now" = 0000 ]; then
    echo "$bus: $value -> 0000"
  else
    echo "$bus: still $now: firmware or hypervisor keeps it" >&2
    failed=1
  fi
done

echo "$seen bridges with ACS, $changed of them with it on"
if [ "$changed" -gt 0 ]; then
  if [ "$apply" = yes ]; then echo "to undo: sh $undo"; else echo 'nothing was changed: --apply does it'; fi
fi
exit $failed
