#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm's Prolog: a node that is worse than its saved report takes no job. A status other than 0 drains
# the node and puts the job back into the queue, so this says it only for what the doctor found; a
# doctor that is missing, slow or misconfigured is a line in the log.
#   gdrx doctor --no-proof --format json > /etc/gdrx/good.json   # once, on the good node
#   slurm.conf: Prolog=/etc/slurm/prolog.sh  PropagateResourceLimitsExcept=MEMLOCK
set -u
gdrx=${GDRX:-/usr/bin/gdrx}
good=${GDRX_GOOD:-/etc/gdrx/good.json}
limit=${GDRX_PROLOG_SECONDS:-60}

say() { logger -t gdrx-prolog "$1" 2> /dev/null || echo "gdrx-prolog: $1" >&2; }

if [ ! -x "$gdrx" ] || [ ! -r "$good" ]; then
  say "not checked: $gdrx or $good is missing"
  exit 0
fi
worse=$(timeout "$limit" "$gdrx" doctor --no-proof --expect "$good" 2>&1 > /dev/null)
status=$?
case $status in
  0) exit 0 ;;
  1)
    # A report that cannot be read is status 1 too, and no reason to drain.
    if [[ $worse != *'worse than in'* ]]; then
      say "not checked: ${worse//$'\n'/; }"
      exit 0
    fi
    say "job ${SLURM_JOB_ID:-?} refused: ${worse//$'\n'/; }"
    echo "print this node is worse than its saved report: see journalctl -t gdrx-prolog"
    exit 1
    ;;
  *)
    say "not checked: status $status"
    exit 0
    ;;
esac
