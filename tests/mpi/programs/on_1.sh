#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# on_1.sh NAME=VALUE command...: a rank's command, with the variable on rank 1 alone.
[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}" != 1 ] || export "${1?}"
shift
exec "$@"
