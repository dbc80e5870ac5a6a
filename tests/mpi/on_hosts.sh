#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank's command on a host of its own for every so many ranks: on_hosts.sh RANKS COMMAND...
locals=$1
shift
GDRX_HOST_ID="host$((OMPI_COMM_WORLD_RANK / locals))" exec "$@"
