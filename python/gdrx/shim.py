# SPDX-License-Identifier: Apache-2.0
"""The C++ part: a c10d backend, which is of one version of PyTorch and of Python.

A module that came with the package (scripts/package wheel) is taken if it is of this PyTorch and Python; else the
sources, which are in the package, are compiled once and kept in the user's cache.
"""
import ctypes
import fcntl
import functools
import hashlib
import importlib.util
import os
import pathlib
import re
import sys
import sysconfig
import tempfile

from gdrx import library

SOURCES = library.HERE / "csrc"
CFLAGS = ["-O2", "-std=c++20", "-fvisibility=hidden"]


def tag(version: str, new_abi: bool = True) -> str:
    """2.15.0+cu132 -> 2_15: one module serves a minor version. PyTorch 2.6 is also built with the strings of
    before C++11: 2_6_old."""
    return "_".join(version.split("+")[0].split(".")[:2]) + ("" if new_abi else "_old")


def _import(name: str, file: pathlib.Path):
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cache(name: str, torch_version: str) -> pathlib.Path:
    """A folder of its own for these sources, this library, this PyTorch and this Python."""
    digest = hashlib.sha256(f"{torch_version} {sys.version} {library.path()}".encode())
    for file in sorted(SOURCES.iterdir()) + sorted((library.include() / "gdrx").iterdir()):
        digest.update(file.read_bytes())
    home = os.environ.get("TORCH_GDRX_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gdrx")
    return pathlib.Path(home) / f"{name}-{digest.hexdigest()[:16]}"


def _standard_library() -> list:
    """The C++ library that PyTorch has loaded: first, so that none of its functions come from a static one. With
    g++ 13 of Ubuntu 24.04 some did, and to write a number into an error's text ended the process."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return sorted({line.split()[-1] for line in maps if "/libstdc++.so" in line})[:1]


def flags() -> dict:
    """What the compiler and the linker are told, for a build now or with the package."""
    lib = library.path().parent
    return {
        "cflags": CFLAGS,
        "include": [str(library.include()), str(SOURCES)],
        "ldflags": [*_standard_library(), f"-L{lib}", f"-l:{library.NAME}", f"-Wl,-rpath,{lib}"],
    }


def _build(name: str, folder: pathlib.Path):
    """Compiles all sources as one, and gives the file its name when it is whole."""
    from torch.utils import cpp_extension

    told = flags()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        source = pathlib.Path(place) / "all.cpp"
        source.write_text("".join(f'#include "{file}"\n' for file in sorted(SOURCES.glob("*.cpp"))))
        module = cpp_extension.load(
            name, [str(source)], extra_cflags=told["cflags"], extra_include_paths=told["include"],
            extra_ldflags=told["ldflags"], build_directory=place)
        os.replace(pathlib.Path(place) / f"{name}.so", folder / f"{name}.so")
    return module


def _compile(name: str, torch_version: str, why: str):
    folder = _cache(name, torch_version)
    built = folder / f"{name}.so"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the ranks of a host: one compiles, the kernel lets go of it
        if built.exists():
            return _import(name, built)
        print(f"gdrx: {why}: compiling one, once, in {folder} (half a minute)", file=sys.stderr)
        try:
            return _build(name, folder)
        except Exception as error:
            raise ImportError(f"gdrx: {why}, and compiling one failed: {error}. "
                              "It needs g++ and ninja (pip install ninja)") from error


def name(torch) -> str:
    return f"gdrx_torch_{tag(torch.__version__, torch.compiled_with_cxx11_abi())}"


def ready(module: str) -> pathlib.Path:
    """Where the module lies, if it came with the package."""
    return library.HERE / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"


def _load_ready(module: str, torch_version: str):
    """The module, or None and why. One of a release is not tried on a PyTorch between releases."""
    file = ready(module)
    if not file.exists() or not re.fullmatch(r"\d+\.\d+\.\d+(\+.*)?", torch_version):
        return None, f"this package has no ready part for PyTorch {torch_version} and Python {sys.version.split()[0]}"
    ctypes.CDLL(str(library.path()))  # the one library of this process, whichever was named for it
    try:
        return _import(module, file), ""
    except ImportError as error:
        return None, f"the ready part {file.name} does not load with PyTorch {torch_version}: {error}"


@functools.cache
def load():
    """The module. Raises ImportError or OSError with what to do."""
    import torch

    module, why = _load_ready(name(torch), torch.__version__)
    return module or _compile(name(torch), torch.__version__, why)
