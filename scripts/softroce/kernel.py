# SPDX-License-Identifier: Apache-2.0
"""A kernel that has soft-RoCE, and the programs that are needed."""
import glob, os, re, shutil, subprocess, tempfile

from softroce.common import SELF, Failure, Unable, say


def cache_folder():
    path = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gdrx", "softroce")
    os.makedirs(path, exist_ok=True)
    return path


def need_programs():
    wanted = ["qemu-system-x86_64", "ib_write_bw", "ibv_devinfo", "modprobe", "depmod", "ip", "rdma", "tc"]
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    os.environ["PATH"] = path
    if all(shutil.which(name) for name in wanted):
        return
    done = subprocess.run([os.path.join(os.path.dirname(SELF), "packages"), "cluster"], stdout=2)
    missing = [name for name in wanted if not shutil.which(name)]
    if done.returncode or missing:
        raise Unable(f"programs are missing: {' '.join(missing)}")


def has_rxe(modules):
    return bool(glob.glob(f"{modules}/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko*"))


def find_kernel():
    """(image, modules, version): an installed one that has rdma_rxe, else the distribution's package, unpacked."""
    def newest(paths):
        return sorted(paths, key=lambda p: [int(x) for x in re.findall(r"\d+", os.path.basename(p))], reverse=True)

    cache = cache_folder()
    for root in ("", f"{cache}/kernel"):
        for modules in newest(glob.glob(f"{root}/lib/modules/*")):
            version = os.path.basename(modules)
            image = f"{root}/boot/vmlinuz-{version}"
            if has_rxe(modules) and os.access(image, os.R_OK) and os.path.exists(f"{modules}/modules.dep"):
                return image, modules, version
    say("fetching the distribution's kernel package (once)")
    with tempfile.TemporaryDirectory(dir=cache) as work:
        os.chmod(work, 0o755)
        names = kernel_packages()
        command(["apt-get", "download", *names], 300, cwd=work)
        for package in glob.glob(f"{work}/*.deb"):
            command(["dpkg", "-x", package, f"{work}/root"], 120)
        if os.path.isdir(f"{work}/root/usr/lib/modules") and not os.path.isdir(f"{work}/root/lib"):
            os.symlink("usr/lib", f"{work}/root/lib")
        found = [m for m in glob.glob(f"{work}/root/lib/modules/*") if has_rxe(m)]
        if not found:
            raise Unable(f"no rdma_rxe in {' '.join(names)}")
        version = os.path.basename(found[0])
        command(["depmod", "-b", f"{work}/root", version], 120)
        shutil.rmtree(f"{cache}/kernel", ignore_errors=True)
        os.rename(f"{work}/root", f"{cache}/kernel")
    return f"{cache}/kernel/boot/vmlinuz-{version}", f"{cache}/kernel/lib/modules/{version}", version


def kernel_packages():
    for attempt in range(2):
        for meta in ("linux-image-amd64", "linux-image-generic"):
            done = subprocess.run(["apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts",
                                   "--no-breaks", "--no-replaces", "--no-enhances", meta], capture_output=True, text=True)
            names = re.findall(r"^(linux-(?:image|modules|modules-extra)-(\d\S*))$", done.stdout, re.M)
            if names:
                version = names[0][1]
                return sorted({name for name, v in names if v == version})
        if attempt == 0:
            subprocess.run((["sudo"] if os.getuid() else []) + ["apt-get", "update", "-qq"], stdout=2, timeout=300)
    raise Unable("apt knows no kernel package (linux-image-amd64, linux-image-generic)")


def command(argv, seconds, **options):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{argv[0]} took more than {seconds} s") from None
    except OSError as error:
        raise Failure(f"{argv[0]}: {error.strerror}") from None
    if done.returncode:
        raise Failure(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return done.stdout
