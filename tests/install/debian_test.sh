#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# debian_test.sh PACKAGES EXAMPLES CACHE: installs the Debian packages of a folder in a bare root of Debian 12, uses them
# there, and removes them again. CACHE keeps the root, and the packages of Debian that it needs. 77, a skip, where such a
# root cannot be made. DEBIAN_MIRROR: where Debian's packages come from, if not from debootstrap's default.
set -euo pipefail
packages=$(realpath "$1") examples=$(realpath "$2")
mkdir -p "$3"
cache=$(realpath "$3")
skip() { echo "skip: $*"; exit 77; }
wrong() { echo "FAILED: $*"; exit 1; }
[ "$(id -u)" = 0 ] || skip "a bare root takes root"
command -v debootstrap > /dev/null || skip "debootstrap is not installed"
# Mounts of its own, that end with it.
unshare --mount true 2> /dev/null || skip "no mounts of its own can be had here"
[ "${apart_by_itself:-}" = yes ] || apart_by_itself=yes exec unshare --mount --propagation private "$0" "$@"
work=$(mktemp -d)
root=$work/root
trap 'umount -l "$root"/{proc,sys,dev} 2> /dev/null; rm -rf --one-file-system "$work"' EXIT
mkdir -p "$root" "$cache/archives"
if [ ! -s "$cache/bookworm.tar" ]; then
  mirror=()
  [ -z "${DEBIAN_MIRROR:-}" ] || mirror=("$DEBIAN_MIRROR")
  debootstrap --variant=minbase bookworm "$work/base" "${mirror[@]}" > "$work/log" 2>&1 ||
    skip "debootstrap ends with $?: $(tail -n 1 "$work/log")"
  rm -f "$work"/base/var/cache/apt/archives/*.deb
  tar -C "$work/base" -cf "$cache/bookworm.tar.new" .
  mv "$cache/bookworm.tar.new" "$cache/bookworm.tar"
fi
tar -C "$root" -xf "$cache/bookworm.tar"
mount -t proc proc "$root/proc" || skip "nothing can be mounted here"
for folder in sys dev; do mount --rbind /$folder "$root/$folder"; done
mount --make-rslave "$root/sys" && mount --make-rslave "$root/dev"
cp /etc/resolv.conf /etc/hosts "$root/etc/" || true
find "$cache/archives" -name '*.deb' -exec ln {} "$root/var/cache/apt/archives/" \; 2> /dev/null ||
  cp "$cache"/archives/*.deb "$root/var/cache/apt/archives/" 2> /dev/null || true
mkdir "$root/gdrx"
cp "$packages"/*.deb "$root/gdrx/"
cp -r "$examples" "$root/examples"
echo 'APT::Keep-Downloaded-Packages "true";' > "$root/etc/apt/apt.conf.d/keep"
echo 'force-unsafe-io' > "$root/etc/dpkg/dpkg.cfg.d/fast"
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive \
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 chroot "$root" bash -c "$1" < /dev/null; }
# apt WORDS: what it says is shown where it fails.
apt() { inside "apt-get -y --no-install-recommends $1" > "$work/log" 2>&1 || { tail -n 20 "$work/log"; wrong "apt-get $1"; }; }
files() { inside "find / -xdev -name '*gdrx*' -not -path '/gdrx*' -not -path '/proc/*' -not -path '/sys/*' | sort"; }

nothing=$(files)
inside "apt-get update" > "$work/log" 2>&1 || skip "no package server is reached: $(tail -n 1 "$work/log")"
echo "the command, without MPI and compilers"
apt "install /gdrx/gdrx-tools_*.deb"
inside "command -v mpirun || command -v gcc" && wrong "gdrx-tools brings MPI or a compiler"
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
find "$root/var/cache/apt/archives" -name '*.deb' -not -name '*gdrx*' -exec cp -un {} "$cache/archives/" \;
[ "$(inside "mpirun -np 4 /tmp/m/under_mpi" | grep -c ': 10$')" = 4 ] || wrong "a program of MPI by CMake"
inside "mpirun -np 2 gdrx mpirun --help > /dev/null; gdrx mpirun -np 2 /tmp/m/under_mpi" | grep ': 3$' > /dev/null || wrong "gdrx mpirun"

echo "the rest, and away with it"
apt "install /gdrx/*.deb"
inside "test -e /usr/share/doc/gdrx/docs/README.md && ! dpkg -V | grep gdrx" || wrong "installed files differ"
apt "purge 'gdrx*' 'libgdrx*'"
[ "$(files)" = "$nothing" ] || wrong "left behind: $(files)"
inside "ldconfig -p" | grep gdrx && wrong "the loader still knows gdrx"
echo "installed, used and removed"
