# SPDX-License-Identifier: Apache-2.0
# Sourced: what a command must print and how it must end. ok and refused count into $checks.
gdrx=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0
cd "$work" || exit 1
for variable in $(env | sed -n 's/^\(GDRX_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done

wrong() {
  echo "FAILED: $1"
  sed 's/^/  out: /' out | head -20
  sed 's/^/  err: /' err | head -20
  exit 1
}

# ok PATTERN arguments...: ends with 0, says nothing on stderr, and PATTERN stands in a line.
ok() {
  local pattern=$1; shift
  "$gdrx" "$@" > out 2> err || wrong "gdrx $* ended with $?"
  [ ! -s err ] || wrong "gdrx $* complains"
  grep -qE -- "$pattern" out || wrong "gdrx $*: no line like '$pattern'"
  checks=$((checks + 1))
}

# refused STATUS PATTERN arguments...: ends with STATUS, one line on stderr like PATTERN, no output.
refused() {
  local status=$1 pattern=$2 got=0; shift 2
  "$gdrx" "$@" > out 2> err < /dev/null || got=$?
  [ "$got" = "$status" ] || wrong "gdrx $* ended with $got, not $status"
  [ "$(wc -l < err)" = 1 ] || wrong "gdrx $*: not one line on stderr"
  [ ! -s out ] || wrong "gdrx $* prints before it fails"
  grep -qE -- "^gdrx: .*$pattern" err || wrong "gdrx $*: the error is not like '$pattern'"
  checks=$((checks + 1))
}
