# SPDX-License-Identifier: Apache-2.0
"""The archive that a guest starts from: its first program, the modules to reach the host's files."""
import glob, json, os, re, shlex

from softroce.common import SELF, Failure
from softroce.root import CHECKOUT

INIT = """#!/bin/sh
# The guest's first program: the root's files below, a layer in memory above, then the agent.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
exec < /dev/console > /dev/console 2>&1
read -r line < /proc/cmdline
case "$line" in *gdrx.probe*)
  echo "gdrx-probe: the kernel runs"
  echo o > /proc/sysrq-trigger
  sleep 60
esac
mount -t sysfs sys /sys
mount -t tmpfs run /run
modprobe -a virtio_pci virtio_rng 9pnet_virtio 9p overlay
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 host /host &&
mount -t tmpfs -o size=75% rw /rw && mkdir /rw/upper /rw/work /run/gdrx &&
mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work root /new && @CHECKOUT@
cp /config.json /run/gdrx/ && exec switch_root /new @PYTHON@ -S @SELF@ agent
echo "gdrx-init: could not build the guest's root"
sleep 60
"""
CHECKOUT_MOUNT = """mkdir -p /new@PATH@ &&
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 checkout /new@PATH@ &&"""
IN_INITRAMFS = ["sh", "mount", "mkdir", "cp", "sleep", "modprobe", "switch_root"]
EARLY_MODULES = ["virtio_pci", "virtio_rng", "9pnet_virtio", "9p", "overlay"]


def cpio(entries):
    """A newc archive of (name, mode, bytes)."""
    out = bytearray()
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        raw = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + raw
        out += b"\0" * (-len(out) % 4) + data
        out += b"\0" * (-len(out) % 4)
    return bytes(out)


def needed(modules):
    """Of each module the files that it takes, its own first."""
    needs = {}
    with open(f"{modules}/modules.dep") as file:
        for line in file:
            path, _, rest = line.partition(":")
            needs[re.sub(r"\.ko.*", "", os.path.basename(path)).replace("-", "_")] = [path, *rest.split()]
    return needs


def initramfs(root, version, config):
    modules = root.here(config["modules"])
    files = {}  # name in the archive -> file here
    for program in IN_INITRAMFS:
        path = root.find(program)
        if not path:
            raise Failure(f"no {program} in {root.folder}")
        files[f"bin/{program}"] = path
        files.update((library.lstrip("/"), file) for library, file in root.libraries(path))
    needs = needed(modules)
    for module in EARLY_MODULES:
        for path in needs.get(module, []):
            files[f"lib/modules/{version}/{path}"] = f"{modules}/{path}"
    for path in glob.glob(f"{modules}/modules.*"):
        files[f"lib/modules/{version}/{os.path.basename(path)}"] = path
    entries = {}
    for folder in ("proc", "sys", "dev", "run", "host", "rw", "new", "tmp"):
        entries[folder] = (0o40755, b"")
    for name, path in files.items():
        parts = name.split("/")
        for depth in range(1, len(parts)):
            entries.setdefault("/".join(parts[:depth]), (0o40755, b""))
        with open(path, "rb") as file:
            entries[name] = (0o100755, file.read())
    checkout = "" if root.own else CHECKOUT_MOUNT.replace("@PATH@", shlex.quote(CHECKOUT))
    init = INIT.replace("@PYTHON@", shlex.quote(root.python())).replace("@SELF@", shlex.quote(SELF)).replace("@CHECKOUT@", checkout)
    entries["init"] = (0o100755, init.encode())
    entries["config.json"] = (0o100600, json.dumps(config).encode())
    return cpio([(name, mode, data) for name, (mode, data) in entries.items()])
