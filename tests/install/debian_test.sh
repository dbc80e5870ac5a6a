#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# debian_test.sh PACKAGES EXAMPLES CACHE [RELEASE]: installs the Debian packages of a folder in a bare root of the release
# for which they are built (bookworm, trixie, noble; else that of this machine), uses them there, and removes them again.
# CACHE keeps the root, and the packages that it needs. 77, a skip, where such a root cannot be made.
set -euo pipefail
packages=$(realpath "$1") examples=$(realpath "$2")
mkdir -p "$3"
cache=$(realpath "$3")
skip() { echo "skip: $*"; exit 77; }
wrong() { echo "FAILED: $*"; exit 1; }
# shellcheck source=scripts/roots/bare_root.sh
. "$(dirname "$0")/../../scripts/roots/bare_root.sh"
root_alone "$0" "$@"
root_start "${4:-}" "$cache"
work=$root_work
mkdir "$root/gdrx"
cp "$packages"/*.deb "$root/gdrx/"
cp -r "$examples" "$root/examples"
# apt WORDS: what it says is shown where it fails.
apt() { inside "apt-get -y --no-install-recommends $1" > "$work/log" 2>&1 || { tail -n 20 "$work/log"; wrong "apt-get $1"; }; }
files() { inside "find / -xdev -name '*gdrx*' -not -path '/gdrx*' -not -path '/proc/*' -not -path '/sys/*' | sort"; }

nothing=$(files)
inside "apt-get update" > "$work/log" 2>&1 || skip "no package server is reached: $(tail -n 1 "$work/log")"
echo "the command, without MPI and compilers"
apt "install /gdrx/gdrx-tools_*.deb"
inside "command -v mpirun || command -v gcc" && wrong "gdrx-tools brings MPI or a compiler"
inside "test ! -e /usr/share/gdrx/env.sh" || wrong "gdrx-tools has env.sh, which /usr does not need"
inside "gdrx topo" > "$work/topo" || wrong "gdrx topo ends with $?: $(cat "$work/topo")"
inside "gdrx topo --cluster '8 H200, one 400 Gb/s NIC a GPU'" | grep NV18 > /dev/null || wrong "gdrx topo of a host in words"
inside "gdrx doctor" > "$work/doctor" 2>&1 || [ $? = 1 ] || wrong "gdrx doctor: $(cat "$work/doctor")"
grep -qi "gpu" "$work/doctor" || wrong "gdrx doctor says: $(cat "$work/doctor")"
inside "test -s /usr/share/man/man1/gdrx-topo.1.gz && . /usr/share/bash-completion/completions/gdrx && complete -p gdrx" > /dev/null ||
  wrong "no man page, or no completion"

echo "programs by pkg-config and by CMake, without MPI"
apt "install /gdrx/libgdrx0_*.deb /gdrx/libgdrx-dev_*.deb g++ pkg-config cmake make"
inside "cc -o /tmp/by_hand /examples/unique_id.c \$(pkg-config --cflags --libs gdrx)" || wrong "pkg-config"
inside "/tmp/by_hand 0 /tmp/id & /tmp/by_hand 1 /tmp/id; wait" | grep ': 3$' > /dev/null || wrong "a program by pkg-config"
inside "cmake -S /examples -B /tmp/b > /tmp/log 2>&1 && cmake --build /tmp/b > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }" || wrong "find_package"
inside "/tmp/b/threads" | grep ': 10$' > /dev/null || wrong "a program by CMake"
inside "test ! -e /tmp/b/under_mpi" || wrong "CMake has gdrx::mpi without its package"

echo "MPI"
apt "install /gdrx/gdrx-mpi-openmpi_*.deb /gdrx/libgdrx-mpi-dev_*.deb openmpi-bin"
inside "mpirun -np 4 allreduce_test -b 8 -e 64K" > "$work/table" 2>&1 || wrong "mpirun -np 4 allreduce_test: $(cat "$work/table")"
grep -q "every element of every rank right" "$work/table" || wrong "allreduce_test: $(cat "$work/table")"
inside "cmake -S /examples -B /tmp/m > /tmp/log 2>&1 && cmake --build /tmp/m --target under_mpi > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }" ||
  wrong "find_package with MPI"
root_keep
[ "$(inside "mpirun -np 4 /tmp/m/under_mpi" | grep -c ': 10$')" = 4 ] || wrong "a program of MPI by CMake"
inside "object=\$(find /usr/lib -name libgdrx-coll-ompi.so) && mv \$object \$object.away && ! gdrx mpirun -np 2 /tmp/m/under_mpi 2>&1
  mv \$object.away \$object" |
  grep "install the package gdrx-mpi-openmpi" > /dev/null || wrong "gdrx mpirun names no package where its object lacks"
inside "mpirun -np 2 gdrx mpirun --help > /dev/null; gdrx mpirun -np 2 /tmp/m/under_mpi" | grep ': 3$' > /dev/null || wrong "gdrx mpirun"

echo "the rest, and away with it"
apt "install /gdrx/*.deb"
inside "test -e /usr/share/doc/gdrx/docs/README.md && ! dpkg -V | grep gdrx" || wrong "installed files differ"
apt "purge 'gdrx*' 'libgdrx*'"
[ "$(files)" = "$nothing" ] || wrong "left behind: $(files)"
inside "ldconfig -p" | grep gdrx && wrong "the loader still knows gdrx"
echo "installed, used and removed"
