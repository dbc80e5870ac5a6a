#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank's command on a host of its own for every so many ranks, as gdrx and NCCL are told:
# on_hosts.sh RANKS COMMAND...
locals=$1
shift
host="host$((OMPI_COMM_WORLD_RANK / locals))"
GDRX_HOST_ID=$host NCCL_HOSTID=$host exec "$@"
