# SPDX-License-Identifier: Apache-2.0
"""Compiles the part that is of one PyTorch and one Python (pybind11 has no limited API)."""
import dataclasses
import hashlib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "python/csrc"
HEADERS = ROOT / "include"
sys.path.insert(0, str(ROOT / "python"))
from gdrx import shim

ASK = ("import json, platform, sysconfig; print(json.dumps([platform.python_version(), "
       "sysconfig.get_config_var('EXT_SUFFIX'), sysconfig.get_path('include')]))")


@dataclasses.dataclass
class Python:
    version: str
    suffix: str
    include: str


def pythons(commands):
    """Those that run and have their headers."""
    found = []
    for command in commands:
        try:
            done = subprocess.run([command, "-c", ASK], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            python = Python(*json.loads(done.stdout)) if done.returncode == 0 else None
        except FileNotFoundError:
            python = None
        if python is None or not (pathlib.Path(python.include) / "Python.h").exists():
            print(f"package: {command}: it does not run here, or has no headers: skipped")
        else:
            found.append(python)
    return found or sys.exit("package: no Python with headers: name one by --python")


def build(torch, python, lib, folder):
    """The module's file."""
    name = f"gdrx_torch_{shim.tag(torch.version, torch.new_abi)}"
    module = folder / f"{name}{python.suffix}"
    include = [f"-I{HEADERS}", f"-I{SOURCES}", f"-isystem{torch.folder}/include",
               f"-isystem{torch.folder}/include/torch/csrc/api/include", f"-isystem{python.include}"]
    defines = [f"-D{define}" for define in (f"TORCH_EXTENSION_NAME={name}", "TORCH_API_INCLUDE_EXTENSION_H", *torch.defines)]
    # The C++ library comes before PyTorch's: see shim.py.
    link = ["-shared", "-s", "-Wl,--no-as-needed", "-lstdc++", f"-L{lib}", "-l:libgdrx.so.0", f"-L{torch.folder}/lib",
            "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python", "-Wl,-rpath,$ORIGIN/lib"]
    command = ["g++", "-fPIC", *shim.CFLAGS, *defines, *include]
    stamp, digest = module.with_suffix(".digest"), _digest([*command, *link])
    if module.exists() and stamp.exists() and stamp.read_text() == digest:
        return module
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.cpp"
    source.write_text("".join(f'#include "{file}"\n' for file in sorted(SOURCES.glob("*.cpp"))))
    half = module.with_suffix(".half")
    done = subprocess.run([*command, str(source), *link, "-o", str(half)], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"package: PyTorch {torch.version}, Python {python.version}: the part does not compile")
    half.rename(module)
    stamp.write_text(digest)
    return module


def _digest(command):
    digest = hashlib.sha256("\0".join(command).encode())
    for file in [*sorted(SOURCES.iterdir()), *sorted((HEADERS / "gdrx").glob("gdrx*.h"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()
