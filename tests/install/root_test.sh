#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# root_test.sh CACHE: a bare root of this machine's release can be made. It stays in CACHE, as do the packages of the
# distribution that debian_test.sh installs, so that they are downloaded once. 77, a skip, where it cannot be made.
set -euo pipefail
mkdir -p "$1"
cache=$(realpath "$1")
skip() { echo "skip: $*"; exit 77; }
# shellcheck source=scripts/roots/bare_root.sh
. "$(dirname "$0")/../../scripts/roots/bare_root.sh"
root_alone "$0" "$@"
root_start '' "$cache"
inside "apt-get update" > "$root.log" 2>&1 || skip "no package server is reached: $(tail -n 1 "$root.log")"
inside "apt-get -y --no-install-recommends --download-only install g++ pkg-config cmake make openmpi-bin libopenmpi-dev libucx0 \
  libibverbs1 librdmacm1 libhwloc-dev libssl-dev libpugixml-dev libarchive-dev zlib1g-dev" > "$root.log" 2>&1 || skip "packages cannot be downloaded: $(tail -n 1 "$root.log")"
root_keep
inside "! command -v gcc && ! command -v mpirun && ! command -v python3"
echo "a bare root of ${root_names[$root_is]}"
