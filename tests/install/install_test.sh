#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD EXAMPLES: installs into a fresh prefix, moves it, and uses only what is there.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/first" > "$work/install.log"
env_file=$work/first/share/gdrx/env.sh
for shell in dash bash zsh; do
  command -v $shell > /dev/null || continue
  [ "$($shell -c ". '$env_file' > /dev/null; . '$env_file'; command -v allreduce_test")" = "$work/first/bin/allreduce_test" ] ||
    { echo "$shell: env.sh, sourced twice, does not find allreduce_test or repeats itself"; exit 1; }
done
mv "$work/first" "$work/prefix"
prefix=$work/prefix
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# expect N PATTERN: standard input has N lines with the pattern.
expect() {
  local text
  text=$(cat)
  [ "$(grep -c "$2" <<< "$text")" = "$1" ] || { echo "not $1 lines with '$2' in:"; echo "$text"; exit 1; }
}

echo "CMake"
cmake -S "$2" -B "$work/examples" -DCMAKE_PREFIX_PATH="$prefix" > "$work/configure.log"
cmake --build "$work/examples" > "$work/build.log"
"$work/examples/threads" | expect 4 ': 10$'
mpirun -np 4 "$work/examples/under_mpi" | expect 4 ': 10$'
("$work/examples/unique_id" 0 "$work/id" & "$work/examples/unique_id" 1 "$work/id"; wait) | expect 2 ': 3$'

echo "pkg-config"
pc=$(dirname "$(find "$prefix" -name gdrx-mpi.pc)")
export PKG_CONFIG_PATH=$pc
read -ra flags <<< "$(pkg-config --cflags --libs gdrx-mpi)"
library=$(pkg-config --variable=libdir gdrx)
mpicc -std=c99 -Wall -Werror -o "$work/by_hand" "$2/under_mpi.c" "${flags[@]}" -Wl,-rpath,"$library"
mpirun -np 3 "$work/by_hand" | expect 3 ': 6$'

echo "the programs, with no help from the build tree"
mpirun -np 2 "$prefix/bin/allreduce_test" -b 8 -e 64K --algo ring \
  | expect 1 'every element of every rank right'

echo "NCCL by its name"
python3 -c "
import ctypes
version = ctypes.c_int()
assert ctypes.CDLL('$(dirname "$pc")/gdrx-nccl/libnccl.so.2').ncclGetVersion(ctypes.byref(version)) == 0
print(version.value)" | expect 1 '^22809$'

echo "no header but the C and C++ interfaces"
diff <(cd "$prefix/include/gdrx" && find . -type f | sort) <(cat << 'EOF'
./communicator.hpp
./gdrx.h
./gdrx_calls.h
./gdrx_look.h
./gdrx_mpi.h
./gdrx_types.h
./mpi_enqueue.h
EOF
)
[ "$(ls "$prefix/include")" = gdrx ]
