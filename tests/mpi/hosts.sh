#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks that believe to be on two hosts: no shared memory of ours, between the hosts TCP of ours.
set -eu
out=$(mpirun -np 2 -x GDRX_HOST_ID=a allreduce_test -b 4 -e 1M -f 16 -n 1 -w 0 \
  : -np 2 -x GDRX_HOST_ID=b allreduce_test -b 4 -e 1M -f 16 -n 1 -w 0)
echo "$out"
echo "$out" | grep -q "# OK: 4 ranks"
echo "$out" | grep -q " ucx+tcp "
if echo "$out" | grep -q " shm "; then echo "shared memory between pretended hosts"; exit 1; fi
