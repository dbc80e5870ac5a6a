#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh ENV_FILE command...: the command after the environment file, as a user types it.
# shellcheck disable=SC1090
. "$1" > /dev/null
shift
exec "$@"
