# SPDX-License-Identifier: Apache-2.0
"""What it takes to compile against a PyTorch that is not installed: headers out of its wheel, and empty libraries
of the names that a module is linked to."""
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

LINKED = ("c10", "torch_cpu", "torch", "torch_python")


@dataclasses.dataclass
class Torch:
    version: str  # of the wheel: 2.6.0
    folder: pathlib.Path  # with include/ and lib/
    defines: list  # how it was compiled, which a module of it must be, too
    new_abi: bool


def of(minor, pythons, work):
    """A minor version's newest wheel for one of these Pythons, whose headers are the same, or None if pip finds none."""
    folder = work / minor
    facts = folder / "facts.json"  # written last
    if not facts.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=_made(work)) as place:
            wheel = next(filter(None, (_download(minor, python, place) for python in pythons)), None)
            if wheel is None:
                return None
            facts.write_text(json.dumps(_unpack(wheel, _made(folder))))
    found = json.loads(facts.read_text())
    return Torch(found["version"], folder, found["defines"], found["new_abi"])


def _made(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _download(minor, python, place):
    """None if pip finds no such wheel, which it also says where it cannot reach the index."""
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-cache-dir", "--no-deps", "--only-binary=:all:",
                           "--python-version", ".".join(python.version.split(".")[:2]), "-d", place, f"torch=={minor}.*"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return next(pathlib.Path(place).glob("torch-*.whl"))
    if "No matching distribution" in done.stderr:
        return None
    sys.exit(f"package: PyTorch {minor}: pip could not fetch it: {done.stderr.strip().splitlines()[-1:]}")


def _unpack(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("torch/include/"):
                archive.extract(name, folder / "all")
        bindings, core = (archive.read(f"torch/lib/{name}") for name in ("libtorch_python.so", "libc10.so"))
    (folder / "all/torch/include").rename(folder / "include")
    shutil.rmtree(folder / "all")
    lib = _made(folder / "lib")
    for name in LINKED:
        subprocess.run(["gcc", "-shared", f"-Wl,-soname,lib{name}.so", "-o", str(lib / f"lib{name}.so"), "-x", "c", "/dev/null"],
                       check=True)
    new_abi = re.search(rb"_ZN3c105ErrorC[12]ENS_14SourceLocationESs\0", core) is None  # its text is no std::string of before C++11
    return {"version": wheel.name.split("-")[1], "new_abi": new_abi, "defines": _defines(bindings, new_abi)}


def _defines(bindings, new_abi):
    """PyTorch's types are known to a module of the same pybind11 and the same mark of a compiler alone. Up to 2.8 the
    mark is what the headers are told; later ones find it themselves."""
    defines = [f"_GLIBCXX_USE_CXX11_ABI={int(new_abi)}"]
    marks = re.search(rb"__pybind11_internals_v\d+(_gcc)(_libstdcpp)(_cxxabi\d+)__", bindings)
    for name, mark in zip(("COMPILER_TYPE", "STDLIB", "BUILD_ABI"), marks.groups() if marks else ()):
        defines.append(f'PYBIND11_{name}="{mark.decode()}"')
    return defines
