# SPDX-License-Identifier: Apache-2.0
"""What a user asks of a process group."""
from typing import TYPE_CHECKING, Any

from gdrx.info import backend_of

if TYPE_CHECKING:
    class Options:
        """For pg_options of init_process_group, new_group and split_group: the same on every rank, but for the stream.

        gpu_blocks: multiprocessors that calls of CUDA tensors may keep busy, 1 to 1024; 0: the default.
        reproducible: see set_reproducible; False: as GDRX_REPRODUCIBLE says.
        is_high_priority_stream: CUDA calls with async_op are in a stream of high priority."""

        def __init__(self, *, gpu_blocks: int = 0, reproducible: bool = False, is_high_priority_stream: bool = False): ...


def __getattr__(name: str) -> Any:
    if name == "Options":  # the C++ part's, which wants torch
        from gdrx import shim

        return shim.load().Options
    raise AttributeError(f"module 'gdrx.options' has no attribute {name!r}")


def set_reproducible(group=None, on: bool = True):
    """From now on sums have the same bits for every size of a call, bucketing and number of hosts: they are taken
    in the order of ranks. Collective, and no call of the group is in flight. What CUDA graphs recorded of it before
    does nothing any more. backend.options.reproducible tells what holds."""
    backend_of(group).set_reproducible(on)
