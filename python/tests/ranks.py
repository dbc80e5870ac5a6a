# SPDX-License-Identifier: Apache-2.0
"""Starts ranks of a test, and is their program: ranks.py MODULE FUNCTION, or MODULE alone for all
its tests in one group."""
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

from counted import Skip

HERE = pathlib.Path(__file__).resolve().parent


def start(size: int, *arguments: str, env=None) -> list:
    """A process a rank, its output as text. They meet by a file: no port is chosen that another
    program may take first."""
    store = pathlib.Path(tempfile.mkdtemp(prefix="gdrx-torch-")) / "store"
    processes = []
    for rank in range(size):
        told = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), TEST_STORE=str(store),
                    OMP_NUM_THREADS="1", **(env or {}))
        processes.append(subprocess.Popen(
            [sys.executable, str(HERE / "ranks.py"), *arguments], env=told, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    return processes


def join(**options):
    """The default group of a rank that was started here."""
    import torch.distributed as dist

    dist.init_process_group("gdrx", init_method=f"file://{os.environ['TEST_STORE']}",
                            rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]),
                            **options)


def finish(processes: list, seconds: float) -> list:
    """(exit status, output) of each; who is late is killed, and has -9."""
    end = time.monotonic() + seconds
    results = []
    for process in processes:
        try:
            output, _ = process.communicate(timeout=max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            output += f"\n(killed: it had not ended within {seconds:.0f} s)"
        results.append((process.returncode, output))
    return results


def since(version: str, what: str):
    """Skips the test where PyTorch is older and does not do `what` for a backend like ours."""
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) < tuple(map(int, version.split("."))):
        raise Skip(f"PyTorch before {version}: {what}")


def _all_tests(module, rank: int, size: int) -> int:
    import torch.distributed as dist

    for name, function in list(vars(module).items()):
        if not name.startswith("test_"):
            continue
        try:
            function(rank, size)
            dist.barrier()
        except Skip as why:
            print(f"skip {name}: {why}", flush=True)
            continue
        except BaseException:  # pylint: disable=broad-except
            print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
            os._exit(1)  # the group is out of step: the others find that this rank is gone
        print(f"ok {name}", flush=True)
    return 0


def main() -> int:
    import torch.distributed as dist

    sys.path.insert(0, str(HERE))
    module = importlib.import_module(sys.argv[1])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if len(sys.argv) > 2:
        return getattr(module, sys.argv[2])(rank, size) or 0
    join()
    status = _all_tests(module, rank, size)
    dist.destroy_process_group()
    return status


if __name__ == "__main__":
    sys.exit(main())
