# SPDX-License-Identifier: Apache-2.0
"""Puts libgdrx, its header and the shim's sources into the package.

TORCH_GDRX_LIBRARY names the folder with libgdrx.so; else the build of this tree is taken. TORCH_GDRX_MODULES names
modules of the shim that are ready, as scripts/package makes them.
"""
import os
import pathlib
import platform
import shutil
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent


def libraries():
    """libgdrx, and what it loads: fabrics, kernels if they were built."""
    folder = pathlib.Path(os.environ.get("TORCH_GDRX_LIBRARY") or TREE / "build/release/lib")
    if not (folder / "libgdrx.so.0").exists():
        sys.exit(f"gdrx: no libgdrx.so.0 in {folder}: build gdrx first (scripts/quickstart), "
                 "or set TORCH_GDRX_LIBRARY")
    return [folder / "libgdrx.so.0", *sorted(folder.glob("libgdrx-fabric-*.so")), *folder.glob("libgdrx-cuda.so")]


class Build(build_py):
    """Adds what is not Python."""

    def run(self):
        super().run()
        package = pathlib.Path(self.build_lib) / "gdrx"
        for folder in ("lib", "include/gdrx", "csrc"):
            shutil.rmtree(package / folder, ignore_errors=True)  # a build before this may have left others there
            (package / folder).mkdir(parents=True)
        for file in libraries():
            shutil.copy(file, package / "lib" / file.name)  # follows links
        for file in sorted((TREE / "include/gdrx").glob("gdrx*.h")):
            shutil.copy(file, package / "include/gdrx")
        for file in sorted((HERE / "csrc").iterdir()):
            shutil.copy(file, package / "csrc")
        for file in package.glob("gdrx_torch_*.so"):
            file.unlink()
        for file in filter(None, os.environ.get("TORCH_GDRX_MODULES", "").split(os.pathsep)):
            shutil.copy(file, package)


class Wheel(bdist_wheel):
    """For every Python, as its modules are found by name; of one machine, with this glibc or a newer one."""

    def get_tag(self):
        libc, version = platform.libc_ver()
        *_, machine = super().get_tag()
        if libc == "glibc":
            machine = f"manylinux_{version.replace('.', '_')}_{platform.machine()}"
        return "py3", "none", machine


class Native(Distribution):
    """It has a library in it: a wheel is of one platform."""

    def has_ext_modules(self):
        return True


setup(packages=["gdrx"], package_data={"gdrx": ["py.typed"]}, distclass=Native,
      cmdclass={"build_py": Build, "bdist_wheel": Wheel}, zip_safe=False)
