#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD EXAMPLES: installs into a fresh prefix and uses only what is there.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" > "$work/install.log"
cmake -S "$2" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/configure.log"
cmake --build "$work/examples" > "$work/build.log"
[ "$("$work/examples/threads" | grep -c ': 10$')" = 4 ]
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ "$(mpirun -np 4 "$work/examples/under_mpi" | grep -c ': 10$')" = 4 ]
mpirun -np 2 "$work/prefix/bin/allreduce_test" -b 8 -e 64K | grep "# OK"
flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name gdrx.pc)") pkg-config --define-variable=prefix="$work/prefix" --modversion gdrx)
[ -n "$flags" ]
