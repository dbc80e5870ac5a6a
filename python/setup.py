# SPDX-License-Identifier: Apache-2.0
"""Puts libgdrx, its header and the shim's sources into the package; builds the shim if torch is here.

TORCH_GDRX_LIBRARY names the folder with libgdrx.so; else the build of this tree is taken.
"""
import os
import pathlib
import shutil
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

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


class Native(Distribution):
    """It has a library in it: a wheel is of one platform."""

    def has_ext_modules(self):
        return True


setup(packages=["gdrx"], package_data={"gdrx": ["py.typed"]}, cmdclass={"build_py": Build}, distclass=Native,
      zip_safe=False)
