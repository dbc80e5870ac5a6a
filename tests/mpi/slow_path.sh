#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# UCX told by somebody else to use TCP alone: one warning a rank, and right results.
set -uo pipefail
out=$(mpirun -np 2 -x UCX_TLS=tcp,self allreduce_test -b 8 -e 8 --algo ring --transport ucx -n 1 -w 0 2>&1) ||
  { echo "$out"; exit 1; }
[ "$(grep -c "over TCP although both are on" <<< "$out")" = 2 ] || { echo "$out"; exit 1; }
# Asked for by name, it is no surprise.
out=$(GDRX_UCX_TLS=tcp mpirun -np 2 allreduce_test -b 8 -e 8 --algo ring --transport ucx -n 1 -w 0 2>&1)
! grep "over TCP although" <<< "$out"
