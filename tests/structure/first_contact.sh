#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# first_contact.sh FOLDER: on a machine that lacks something, scripts/packages and scripts/quickstart end with an error and
# one line that says what, where, and what to do. The machine's own tools are played by scripts.
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "FAILED: $*"; exit 1; }
# machine NAME=BODY...: a PATH on which these are all that is special; without dpkg-query unless it is named.
machine() {
  rm -rf "${work:?}/bin"
  mkdir "$work/bin"
  for tool in bash sh cat grep head tail mktemp rm mkdir dirname id env sed tr; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
  for one in "$@"; do
    rm -f "$work/bin/${one%%=*}"
    printf '#!/bin/sh\n%s\n' "${one#*=}" > "$work/bin/${one%%=*}"
    chmod +x "$work/bin/${one%%=*}"
  done
}
# refused WORDS SCRIPT: it ends with 1, and its last line has the words.
refused() {
  local said status=0
  said=$(env -i PATH="$work/bin" HOME="$work" "$2" 2>&1 < /dev/null) || status=$?
  [ $status = 1 ] || wrong "$2 ends with $status: $said"
  [[ $(tail -n 1 <<< "$said") =~ $1 ]] || wrong "its last line has no '$1': $said"
  [ "$(grep -cE '^gdrx: ([^ia]|apt)' <<< "$said")" = 1 ] || wrong "not one line of gdrx's: $said"
}
none='exit 1'
root='echo 0'
# shellcheck disable=SC2016
user='[ "$1" = -un ] && echo ann || echo 1000'
machine
refused "no dpkg here: install what these Debian packages hold: build-essential" "$source/scripts/packages"
machine dpkg-query="$none" id="$user"
refused "neither root nor has sudo; let an administrator run: apt-get install build-essential" "$source/scripts/packages"
machine dpkg-query="$none" id="$user" sudo="$none"
refused "sudo is not allowed here; let an administrator run" "$source/scripts/packages"
machine dpkg-query="$none" id="$root" apt-get='echo "E: Failed to fetch x  Temporary failure resolving" >&2; exit 100'
refused "apt-get update fails: E: Failed to fetch .*See to the network" "$source/scripts/packages"
# shellcheck disable=SC2016
machine dpkg-query="$none" id="$root" apt-get='case $* in *update*) ;; *) echo "E: Unable to locate package ninja-build"; exit 100 ;; esac'
refused "apt-get install fails: E: Unable to locate package ninja-build" "$source/scripts/packages"
# quickstart: a clone that it cannot write, and a compiler that does not run.
mkdir -p "$work/clone/scripts"
cp "$source/scripts/quickstart" "$source/scripts/packages" "$work/clone/scripts/"
touch "$work/clone/build"
machine id="$user"
refused "clone/build cannot be written by ann: clone gdrx into a folder of your own" "$work/clone/scripts/quickstart"
rm "$work/clone/build"
machine dpkg-query='echo install ok installed' cmake='exit 1'
refused "cmake could not configure: it says nothing; all that it says is in" "$work/clone/scripts/quickstart"
machine dpkg-query='echo install ok installed' cmake='echo "CMake Error: CMAKE_CXX_COMPILER not set"; exit 1'
refused "cmake could not configure: CMake Error: CMAKE_CXX_COMPILER not set ?; all that it says is in build/quickstart.log" "$work/clone/scripts/quickstart"
