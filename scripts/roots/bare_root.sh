# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# To be sourced: a bare root of a distribution's release, in mounts of its own. Needs root, debootstrap, and skip() for
# what to do where such a root cannot be made.
#   root_alone "$0" "$@"           starts the script anew in mounts of its own: they end with it
#   root_start RELEASE CACHE       lays the root at $root; RELEASE '': that which runs here, and $root_is says which. CACHE keeps
#                                  it as an archive, and the packages that went into it. When the script exits the root goes
#                                  away; the folder $root_work is the script's till then
#   root_keep                      puts the packages that were downloaded since into CACHE
#   inside WORDS                   runs bash in the root, as root
# DEBIAN_MIRROR: where packages come from, if not from debootstrap's default. UBUNTU_MIRROR: the same of Ubuntu, without one.

# shellcheck disable=SC2034 # for those that source this
declare -A root_names=([bookworm]="Debian 12" [trixie]="Debian 13" [noble]="Ubuntu 24.04")

root_alone() {
  [ "$(id -u)" = 0 ] || skip "a bare root takes root"
  command -v debootstrap > /dev/null || skip "debootstrap is not installed"
  unshare --mount true 2> /dev/null || skip "no mounts of its own can be had here"
  [ "${apart_by_itself:-}" = yes ] || apart_by_itself=yes exec unshare --mount --propagation private "$@"
}

root_bootstrap() {
  local release=$1 base=$2 log=$3 rest=()
  if [ "$release" = noble ]; then
    # A debootstrap that is older than the release takes the script that all of Ubuntu's releases share.
    [ -n "${UBUNTU_MIRROR:-}" ] || skip "UBUNTU_MIRROR names no archive of Ubuntu, such as the URL in its /etc/apt/sources.list"
    rest=("$UBUNTU_MIRROR" /usr/share/debootstrap/scripts/gutsy)
    set -- "$@" --components=main,universe
  else
    [ -z "${DEBIAN_MIRROR:-}" ] || rest=("$DEBIAN_MIRROR")
  fi
  debootstrap --variant=minbase "${@:4}" "$release" "$base" "${rest[@]}" > "$log" 2>&1 ||
    skip "debootstrap $release ends with $?: $(tail -n 1 "$log")"
  rm -f "$base"/var/cache/apt/archives/*.deb
}

# The release that runs here, if none is named.
root_release() {
  # shellcheck source=/dev/null
  root_is=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")}
  [ -n "${root_names[$root_is]:-}" ] || skip "no bare root of $root_is is known"
}

root_start() {
  local folder
  root_release "$1"
  root_cache=$2/$root_is
  mkdir -p "$root_cache/archives"
  root_work=$(mktemp -d "$root_cache/work.XXXXXX") root=$root_work/root
  mkdir "$root"
  trap root_remove EXIT
  if [ ! -s "$root_cache/root.tar" ]; then
    root_bootstrap "$root_is" "$root.base" "$root.log"
    tar -C "$root.base" -cf "$root_cache/root.tar.new" .
    mv "$root_cache/root.tar.new" "$root_cache/root.tar"
  fi
  tar -C "$root" -xf "$root_cache/root.tar"
  mount -t proc proc "$root/proc" || skip "nothing can be mounted here"
  for folder in sys dev; do mount --rbind /$folder "$root/$folder"; done
  mount --make-rslave "$root/sys" && mount --make-rslave "$root/dev"
  cp /etc/resolv.conf /etc/hosts "$root/etc/" || true
  find "$root_cache/archives" -name '*.deb' -exec ln {} "$root/var/cache/apt/archives/" \; 2> /dev/null ||
    cp "$root_cache"/archives/*.deb "$root/var/cache/apt/archives/" 2> /dev/null || true
  echo 'APT::Keep-Downloaded-Packages "true";' > "$root/etc/apt/apt.conf.d/keep"
  rm -f "$root/etc/apt/apt.conf.d/docker-clean"
  echo 'force-unsafe-io' > "$root/etc/dpkg/dpkg.cfg.d/fast"
}

root_keep() {
  find "$root/var/cache/apt/archives" -name '*.deb' -not -name '*gdrx*' -exec cp -un {} "$root_cache/archives/" \;
}

root_remove() {
  umount -l "$root"/{proc,sys,dev} 2> /dev/null || true
  rm -rf --one-file-system "$root_work"
}

inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive OMPI_ALLOW_RUN_AS_ROOT=1 \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
    chroot "$root" bash -c "$1" < /dev/null
}
