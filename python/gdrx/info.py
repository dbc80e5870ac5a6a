# SPDX-License-Identifier: Apache-2.0
"""Questions to a group that runs on gdrx."""
import contextlib


def backend_of(group=None):
    """The gdrx backend of a process group; None is the default group."""
    import torch
    import torch.distributed as dist

    group = group if group is not None else dist.group.WORLD
    if group is None:
        raise ValueError("gdrx: there is no process group: call init_process_group first")
    found = []
    for device in ("cpu", "cuda"):
        with contextlib.suppress(RuntimeError):  # the group has no backend for it
            found.append(group._get_backend(torch.device(device)))
    for backend in found:
        if hasattr(backend, "failure"):
            return backend
    raise ValueError(f"gdrx: the group runs on {', '.join(type(one).__name__ for one in found)}, not on gdrx")


def explain(tensor, op: str = "all_reduce", group=None) -> str:
    """Why an all_reduce of this tensor runs as it does: the candidates with predicted times."""
    if op != "all_reduce":
        raise ValueError(f"gdrx: explain knows all_reduce, not {op!r}")
    return backend_of(group).explain(tensor.numel() * tensor.element_size(), tensor.is_cuda)


def failure(group=None) -> str:
    """Why the group has failed; empty if it has not."""
    return backend_of(group).failure()


def stats(group=None) -> dict:
    """What the group has done, and whom it waits for; any thread may ask.

    calls: name, with how many (count), the bytes of this rank's tensors, and the seconds that calls of CPU tensors took.
    waited: rank, and the seconds for which calls have waited for it, from looks a tenth of a second apart.
    late: the ranks that running calls wait for. running, behind: calls that run, and that wait for those.
    seconds: for which the oldest has run. text: a line for each running call."""
    return backend_of(group).stats()


def version() -> str:
    """The version of libgdrx that is in use."""
    import ctypes

    from gdrx import library

    number = ctypes.CDLL(str(library.path())).gdrxGetVersion()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
