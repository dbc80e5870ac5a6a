# SPDX-License-Identifier: Apache-2.0
"""A folder with a small distribution for --root: for machines on which nothing can be installed."""
import os, shutil

from softroce.common import Failure, say
from softroce.initramfs import EARLY_MODULES, needed
from softroce.kernel import command, find_kernel
from softroce.root import Root

PACKAGES = ["python3", "openmpi-bin", "libucx0", "libhwloc15", "libssl3", "libpugixml1v5", "libarchive13", "ibverbs-providers", "ibverbs-utils", "librdmacm1",
            "iproute2", "rdma-core", "kmod", "perftest", "qemu-system-x86"]
# What a guest never reads, and most of a root's size.
LEFT_OUT = ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "usr/share/icons",
            "usr/share/alsa", "usr/share/perl", "usr/lib/x86_64-linux-gnu/perl-base", "usr/lib/x86_64-linux-gnu/dri",
            "usr/lib/gcc", "usr/include", "var/cache/apt", "var/lib/apt", "var/log", "boot"]
MODULES = [*EARLY_MODULES, "virtio_net", "rdma_rxe", "rdma_ucm", "sch_netem", "sch_ingress", "cls_u32", "act_gact",
           "crc32_generic", "libcrc32c", "crc32c_generic"]  # rxe asks for its checksums by name


def make_root(folder):
    """Debian 12 with what the guests' programs need, the kernel that they run and QEMU. Takes root and the archive."""
    if os.getuid():
        raise Failure("root: only root can make one (debootstrap)")
    if os.path.exists(folder):
        raise Failure(f"root {folder}: it exists already")
    if not shutil.which("debootstrap"):
        raise Failure("root: no debootstrap on this machine; install the package debootstrap")
    image, modules, version = find_kernel()
    say(f"{folder}: Debian 12 by debootstrap, some minutes")
    made, folder = folder, f"{folder}.new"
    shutil.rmtree(folder, ignore_errors=True)
    mirror = [os.environ["DEBIAN_MIRROR"]] if os.environ.get("DEBIAN_MIRROR") else []
    command(["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm", folder, *mirror], 1800)
    for name in LEFT_OUT:
        shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
    for name in ("boot", "var/log", "var/cache/apt", "var/lib/apt", f"usr/lib/modules/{version}/kernel"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
    shutil.copy(image, f"{folder}/boot/vmlinuz-{version}")
    os.chmod(f"{folder}/boot/vmlinuz-{version}", 0o644)  # Ubuntu's is root's alone
    copy_modules(modules, f"{folder}/usr/lib/modules/{version}")
    command(["depmod", "-b", folder, version], 120)
    Root(folder)  # says what it lacks
    os.rename(folder, made)
    folder = made
    say(f"{folder} is ready: softroce-cluster up --root {folder}")
    return 0


def copy_modules(modules, into):
    """Those that a guest loads, each with what it needs, and the lists that depmod reads."""
    needs = needed(modules)
    for path in {path for name in MODULES for path in needs.get(name, [])}:
        os.makedirs(os.path.dirname(f"{into}/{path}"), exist_ok=True)
        shutil.copy(f"{modules}/{path}", f"{into}/{path}")
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(f"{modules}/{name}", f"{into}/{name}")
