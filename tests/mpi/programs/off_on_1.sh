#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank's command, with gdrx off on rank 1.
[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export GDRX_MPI=off
exec "$@"
