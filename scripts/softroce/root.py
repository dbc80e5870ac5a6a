# SPDX-License-Identifier: Apache-2.0
"""The files that guests see: this machine's, or a folder's that holds a distribution."""
import glob, os, re, shutil, sys

from softroce.common import SELF, Failure
from softroce.kernel import command, has_rxe

CHECKOUT = os.path.dirname(os.path.dirname(SELF))  # scripts/ and the build, which guests see at the same path
FOLDERS = ["usr/local/bin", "usr/bin", "bin", "usr/sbin", "sbin"]
IN_GUESTS = ["python3", "mpirun", "ibv_devinfo", "modprobe", "switch_root", "ip", "rdma", "tc"]
LOADER = "lib64/ld-linux-x86-64.so.2"
QEMU = "qemu-system-x86_64"


class Root:
    """Of this machine (folder "/") or of another folder, of which every program's path begins there."""

    def __init__(self, folder="/"):
        self.folder = os.path.realpath(folder)
        self.own = self.folder == "/"
        if self.own:
            return
        if re.search(r"[\s,:]", self.folder) or not os.path.isdir(self.folder):
            raise Failure(f"--root {folder}: no such folder, or a blank, comma or colon in its name")
        missing = [name for name in IN_GUESTS if not self.find(name)]
        if missing:
            raise Failure(f"--root {folder}: no {' '.join(missing)} in it; softroce-cluster root makes one")

    def here(self, path):
        """Where this machine has what the root calls `path`. Links are followed within the root, as a guest does."""
        if self.own:
            return os.path.realpath(path)
        names, at = [name for name in path.split("/") if name], self.folder
        for _ in range(200):
            if not names:
                return at
            name = names.pop(0)
            if name in (".", ".."):
                at = at if name == "." or at == self.folder else os.path.dirname(at)
                continue
            next_at = os.path.join(at, name)
            if os.path.islink(next_at):
                to = os.readlink(next_at)
                names = [part for part in to.split("/") if part] + names
                at = self.folder if to.startswith("/") else at
            else:
                at = next_at
        raise Failure(f"{self.folder}: {path} is a circle of links")

    def find(self, program):
        """The program's file, links followed; None: the root has none."""
        if self.own:
            path = shutil.which(program)
            return path and os.path.realpath(path)
        for folder in FOLDERS:
            path = self.here(f"{folder}/{program}")
            if os.access(path, os.X_OK):
                return path
        return None

    def name(self, path):
        """What the root calls a file that this machine has at `path`."""
        return path if self.own else "/" + os.path.relpath(path, self.folder)

    def libraries(self, path):
        """What a program loads: (name in the root, file here)."""
        listing = command(["ldd", path] if self.own else [*self.loader(), "--list", path], 20)
        found = re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listing, re.M)
        names = found if self.own else [self.name(library) if library.startswith(f"{self.folder}/") else library for library in found]
        return [(name, self.here(name)) for name in names]

    def loader(self):
        """Runs one of the root's programs here, with the root's libraries."""
        folders = [f"{self.folder}/{name}" for name in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")]
        return [f"{self.folder}/{LOADER}", "--library-path", ":".join(folders)]

    def python(self):
        return os.path.realpath(sys.executable) if self.own else self.name(self.find("python3"))

    def qemu(self):
        """This machine's QEMU, else the root's."""
        if shutil.which(QEMU) or self.own:
            return [QEMU]
        found = self.find(QEMU)
        if not found:
            raise Failure(f"no {QEMU} on this machine, and none in {self.folder}")
        return [*self.loader(), found, "-L", f"{self.folder}/usr/share/qemu", "-L", f"{self.folder}/usr/share/seabios"]

    def kernel(self):
        """(image, modules as the root calls them, version) of the newest kernel in the folder that has soft-RoCE."""
        found = [path for path in glob.glob(f"{glob.escape(self.folder)}/lib/modules/*") if has_rxe(path)]
        for modules in sorted(found, key=lambda p: [int(x) for x in re.findall(r"\d+", os.path.basename(p))], reverse=True):
            version = os.path.basename(modules)
            image = f"{self.folder}/boot/vmlinuz-{version}"
            if os.access(image, os.R_OK) and os.path.exists(f"{modules}/modules.dep"):
                return image, f"/lib/modules/{version}", version
        raise Failure(f"{self.folder}: no kernel with rdma_rxe and its modules.dep")
