#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files from anywhere: status 1, one clear line, nothing printed before it, and soon. usage: bad_input.sh GDRX
set -u
here=$(dirname "$(readlink -f "$0")")
. "$here/expect.sh"
corpus=$here/../fuzz/corpus

# each PATTERN FILE: as a topology, and as a report and snapshot of doctor's
each() {
  local pattern=$1 file=$2
  SECONDS=0
  refused 1 "$pattern" topo "$file"
  refused 1 '.' doctor --snapshot "$file"
  refused 1 '.' doctor --expect "$file"
  [ "$SECONDS" -lt 60 ] || wrong "$file takes $SECONDS s"
}

: > empty
each 'empty' empty
printf ' \n\t\n' > blank
each 'empty' blank
each 'nothing.xml' nothing.xml
mkdir folder
refused 1 'folder' topo folder
head -c 3000 /dev/urandom > noise
each 'noise' noise

# XML: cut off anywhere, defining itself, pointing elsewhere, deep, and large.
for bytes in 1 60 500 2000 4000; do
  head -c "$bytes" "$corpus/topo/hwloc.xml" > cut.xml
  each 'cut.xml' cut.xml
done
echo '<!DOCTYPE x [<!ENTITY a "&b;"><!ENTITY b "&a;">]><system version="&a;"/>' > cycle.xml
each 'declarations' cycle.xml
echo '<!DOCTYPE x SYSTEM "file:///etc/passwd"><system version="&x;"/>' > outside.xml
each 'entity' outside.xml
python3 -c 'print("<system>" + "<cpu>" * 200000 + "</cpu>" * 200000 + "</system>")' > deep.xml
each 'too deep' deep.xml
python3 -c 'print("<system>" + "<cpu numaid=\"0\"/>" * 2000000 + "</system>")' > large.xml
each 'large.xml' large.xml
printf '<system><cpu numaid="0"><pci busid="0000:10:00.0"><pci busid="0000:10:00.0"/></pci></cpu></system>' > self.xml
each '0000:10:00.0' self.xml

# Archives: out of themselves, through links, of what no snapshot has, cut off, damaged, and growing.
python3 - <<'PY'
import io, tarfile


def archive(name, *entries):
    with tarfile.open(name, "w", format=tarfile.USTAR_FORMAT) as tar:
        for path, kind, link in entries:
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname, entry.size = kind, link, 2 if kind == tarfile.REGTYPE else 0
            tar.addfile(entry, io.BytesIO(b"1\n"))


FILE = ("sys/x", tarfile.REGTYPE, "")
archive("up.tar", ("sys/../../outside", tarfile.REGTYPE, ""))
archive("absolute.tar", ("/etc/passwd", tarfile.REGTYPE, ""))
archive("through.tar", ("sys/link", tarfile.SYMTYPE, "/etc"), ("sys/link/passwd", tarfile.REGTYPE, ""))
archive("twice.tar", FILE, FILE)
archive("hard.tar", FILE, ("sys/y", tarfile.LNKTYPE, "sys/x"))
archive("pipe.tar", ("sys/pipe", tarfile.FIFOTYPE, ""))
archive("node.tar", ("dev/null", tarfile.CHRTYPE, ""))
PY
each 'leads out' up.tar
each 'absolute' absolute.tar
each 'through a file or a link' through.tar
each 'twice' twice.tar
each 'hard link' hard.tar
each 'no file, folder or symbolic link' pipe.tar
each 'no file, folder or symbolic link' node.tar
head -c 1000 "$corpus/snapshot/host.tar" > cut.tar
each 'cut off|ends in the middle' cut.tar
{ printf 'x'; cat "$corpus/snapshot/host.tar"; } > shifted.tar
each 'shifted.tar' shifted.tar
gzip -c "$corpus/snapshot/host.tar" | head -c 400 > cut.tar.gz
each 'cut off' cut.tar.gz
head -c 200000000 /dev/zero | gzip -1 > bomb.tar.gz
each 'more than 64 MiB' bomb.tar.gz
truncate -s 63M large && tar cSf sparse.tar large && rm large
each 'sparse' sparse.tar
gzip -c bomb.tar.gz > twice.tar.gz
each 'archive' twice.tar.gz

# Circles of links are no error: what they lead to is not there.
"$gdrx" topo "$corpus/snapshot/circle.tar" > out 2> err || [ "$(wc -l < err)" = 1 ] || wrong 'circles of links'
ok 'GPU0' topo "$corpus/snapshot/host.tar"
echo "$checks bad files refused in one line each"
