# SPDX-License-Identifier: Apache-2.0
"""gdrx among PyTorch's distributed backends. torch is imported when a function is called."""
import atexit
import datetime
import functools
import os
import sys
import warnings

# A rank that ends in good order waits so long for the others before it leaves.
GRACE = datetime.timedelta(seconds=10)


def autoload():
    """The entry point `torch.backends`, at the end of `import torch`: whatever is wrong with us,
    PyTorch goes on."""
    try:
        import torch.distributed

        if torch.distributed.is_available():
            register()
    except Exception as error:  # pylint: disable=broad-except
        warnings.warn(f"gdrx is not among torch.distributed's backends: {error}", stacklevel=2)


def register():
    """The entry point `torch.distributed.backends`. Twice is as good as once."""
    from torch.distributed import distributed_c10d as c10d

    from gdrx import launcher

    launcher.serve_env()
    if "GDRX" not in c10d.Backend._plugins:
        c10d.Backend.register_backend("gdrx", create, extended_api=True, devices=["cpu", "cuda"])


def create(options, pg_options=None):
    """A group's backend. `options`: what PyTorch hands over; the user's pg_options may be of any type."""
    later = getattr(options, "enable_reconfigure", False)  # from 2.14 on: who is in the group is said later
    backend = make(options.store, options.group_rank, options.group_size, options.timeout, asked_by(pg_options), later)
    backend.named(options.group_id, list(options.global_ranks_in_group))
    return backend


def asked_by(pg_options):
    """gdrx.Options, or what those of NCCL's type say that is ours, too."""
    from gdrx import shim

    options = shim.load().Options
    if isinstance(pg_options, options):
        return pg_options
    blocks = getattr(getattr(pg_options, "config", None), "max_ctas", 0)  # negative if unset
    return options(gpu_blocks=blocks if 0 < blocks <= 1024 else 0,
                   is_high_priority_stream=getattr(pg_options, "is_high_priority_stream", False))


def make(store, rank: int, size: int, timeout: datetime.timedelta, options=None, later: bool = False):
    """The backend itself, for who keeps its own groups. options: gdrx.Options. later: it has members from its first
    reconfigure on."""
    from gdrx import shim, watch

    _leave_at_exit(os.getpid())
    watch.start()
    return shim.load().Backend(store, rank, size, timeout, options, later)


@functools.cache
def _leave_at_exit(process):
    """Once a process: a forked child has its own."""
    atexit.register(_leave, process)


def _leave(process):
    """The process ends. After an error the other ranks are told at once; else they are waited for."""
    from gdrx import shim, summary, watch

    if os.getpid() != process:
        return  # a forked child: the groups are its parent's
    failed = getattr(sys, "last_value", None) is not None
    try:
        watch.stop()
        summary.print_if_asked()
    finally:
        shim.load().leave_all(datetime.timedelta(0) if failed else GRACE, GRACE)
