# SPDX-License-Identifier: Apache-2.0
"""What a wheel of scripts/package must do, for the Python that runs this, where such a wheel is installed.

packaged.py [TEST...]. Prints "ok NAME" or "FAILED NAME" for each; the exit status is 1 if any failed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from counted import Failure, Skip, alone, count

MODULE = "from gdrx import shim; module = shim.load(); print(module.__file__); "


def python(code, cache, **env):
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                          cwd=cache, env=dict(os.environ, TORCH_GDRX_CACHE=cache, OMP_NUM_THREADS="1", **env), check=False)
    return done.returncode, done.stdout, done.stderr


def ready():
    """The ready part of this PyTorch and Python."""
    import torch
    from gdrx import shim

    file = shim.ready(shim.name(torch))
    if not file.exists():
        raise Skip(f"this wheel has no ready part for PyTorch {torch.__version__}: {file.name}")
    return file


def test_the_ready_part_is_taken_and_nothing_is_compiled():
    file = ready()
    with tempfile.TemporaryDirectory() as cache:
        status, out, said = python(MODULE, cache)
        if status != 0 or out.strip() != str(file) or "compiling" in said or os.listdir(cache):
            raise Failure(f"{status} {out} {said} {os.listdir(cache)}")


def test_one_library_serves_the_ready_part_and_who_named_another():
    ready()
    from gdrx import library

    with tempfile.TemporaryDirectory() as cache:
        copy = pathlib.Path(cache, library.NAME)
        copy.write_bytes(library.path().read_bytes())
        status, out, said = python(MODULE + "print({line.split()[-1] for line in open('/proc/self/maps') "
                                            f"if '{library.NAME}' in line}})", cache, TORCH_GDRX_LIBRARY=cache)
        if status != 0 or out.splitlines()[-1] != str({str(copy)}):
            raise Failure(f"{status} {out} {said}")


def test_no_ready_part_and_no_compiler_is_one_clear_error_of_ours_alone():
    """As with a newer PyTorch on a machine without g++."""
    newer = ("import torch; torch.__version__ = '2.99.0'; import torch.distributed as dist\n"
             "try:\n    dist.init_process_group('gdrx', store=dist.HashStore(), rank=0, world_size=1)\n"
             "except ImportError as error: print(error)\nprint(torch.ones(3).sum())")
    with tempfile.TemporaryDirectory() as cache:
        status, out, said = python(newer, cache, PATH=cache, CXX="")
        for words in ("PyTorch 2.99.0", "g++"):
            if status != 0 or words not in out or "tensor(3.)" not in out or "no ready part for PyTorch 2.99.0" not in said:
                raise Failure(f"{status} {out} {said}")


def test_a_ready_part_that_does_not_load_is_named_with_the_reason():
    with tempfile.TemporaryDirectory() as cache:
        part = pathlib.Path(cache, "part.so")
        part.write_text("no module" * 100)
        broken = f"import pathlib; from gdrx import shim; shim.ready = lambda name: pathlib.Path('{part}')\n"
        status, out, said = python(broken + "try:\n    shim.load()\nexcept ImportError as error: print(error)", cache, PATH=cache, CXX="")
        for text in (out, said):
            if status != 0 or "part.so does not load" not in text or "invalid ELF header" not in text or "no ready part" in text:
                raise Failure(f"{status} {out} {said}")


if __name__ == "__main__":
    sys.exit(count(alone(globals(), sys.argv[1:])))
