# SPDX-License-Identifier: Apache-2.0
"""The source tarball: what is committed, with the commit in it, so that it builds without git."""
import re
import subprocess
import sys


def version_of(root):
    return re.search(r"^project\(gdrx VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text(), re.M).group(1)


def make(root, out):
    if subprocess.run(["git", "-C", root, "rev-parse", "-q", "--verify", "HEAD"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      check=False).returncode:
        sys.exit(f"package: {root} is no checkout of git: a source tarball is made of a commit")
    changed = subprocess.run(["git", "-C", root, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    if changed:
        print("package: what is not committed is not in it", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    name = f"gdrx-{version_of(root)}"
    path = (out / f"{name}.tar.gz").resolve()
    subprocess.run(["git", "-C", root, "archive", "--format=tar.gz", f"--prefix={name}/", "-o", path, "HEAD"], check=True)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
