#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gdrx config: usage: config.sh GDRX
set -u
. "$(dirname "$(readlink -f "$0")")/expect.sh"

ok '^GDRX_ALGO +auto +auto +default ' config
ok '^GDRX_TIMEOUT +300 +300 +default +.*\[seconds\]$' config
export GDRX_SLICE=1M
ok '^GDRX_SLICE +0 +1048576 +environment ' config
ok '"from": "environment"' config --format json
python3 - out <<'PY' || wrong "the JSON does not say what the environment says"
import json, sys
table = json.load(open(sys.argv[1]))
row = next(v for v in table["variables"] if v["name"] == "GDRX_SLICE")
assert (row["default"], row["value"], row["from"]) == ("0", "1048576", "environment"), row
assert table["warnings"] == []
PY
export GDRX_SLICE=many
refused 2 "GDRX_SLICE=many: a size such as" config
unset GDRX_SLICE
GDRX_THREAD_CPUS=0-3,x refused 2 "GDRX_THREAD_CPUS=0-3,x: auto, off or a list of CPUs" config
# Other hosts of the job may have them: the table is printed all the same.
GDRX_THREAD_CPUS=65535 "$gdrx" config > out 2> err
[ $? = 2 ] || wrong "CPUs that are not there are no error"
grep -q "^gdrx: .*GDRX_THREAD_CPUS=65535: CPU 65535: not there" err || wrong "CPUs that are not there are not named"
grep -q '^GDRX_THREAD_CPUS .*65535' out || wrong "without those CPUs there is no table"
export GDRX_TIMEOUTT=3
"$gdrx" config > out 2> err || wrong "an unknown variable is a warning, not an error"
grep -qx "gdrx: warning: GDRX_TIMEOUTT is not a variable of gdrx: did you mean GDRX_TIMEOUT?" err ||
  wrong "the nearest name is not named"
"$gdrx" config --format json 2> err | grep -q '"GDRX_TIMEOUTT is not a variable' ||
  wrong "the JSON has no warnings"
unset GDRX_TIMEOUTT
# A program with more rights than who started it: root's bit, run by nobody.
if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
  chmod 755 .
  install -m 4755 "$gdrx" ./privileged
  if setpriv --reuid nobody --clear-groups ./privileged config > out 2> err < /dev/null; then
    GDRX_MODULE_PATH=/tmp/evil setpriv --reuid nobody --clear-groups ./privileged config > out 2> err
    grep -q '^gdrx: warning: GDRX_MODULE_PATH is ignored' err || wrong "no warning of an ignored path"
    if grep -q evil out; then wrong "a privileged program takes a path from who started it"; fi
  fi
  rm -f ./privileged
fi
refused 2 "xml not in" config --format xml
echo "$((checks + 2)) checks of gdrx config passed"
