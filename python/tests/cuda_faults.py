# SPDX-License-Identifier: Apache-2.0
"""Faults while a GPU waits: programs of ranks for cuda_ranks.py, which looks at what rank 0 says."""
import datetime
import logging
import os
import signal
import sys
import threading
import time

import gdrx
import torch
import torch.distributed as dist

import ranks
from cuda_all import device, use_gpu


def _begin(rank, seconds=20, **options):
    use_gpu(rank)
    ranks.join(timeout=datetime.timedelta(seconds=seconds), **options)
    dist.all_reduce(torch.ones(8))
    torch.cuda.synchronize()
    dist.barrier()
    time.sleep(0.3)


def _report(call):
    """Until it raises: a GPU's error is seen by the next call that looks."""
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < 15:
            call()
            torch.cuda.synchronize()
            time.sleep(0.001)
        print("PASSED", flush=True)
    except RuntimeError as error:
        print(f"RAISED {time.monotonic() - begun:.3f} {str(error).splitlines()[0]}", flush=True)
        backend = dist.group.WORLD._get_backend(torch.device("cuda"))
        print(f"STATE {backend.get_error()} {backend.failure()}", flush=True)
    finally:
        print("FINALLY", flush=True)
    torch.ones(4).add_(1)  # the GPU is still of use
    torch.cuda.synchronize()
    dist.destroy_process_group()


def another_count(rank, size):
    _begin(rank)
    _report(lambda: dist.all_reduce(torch.ones(6 if rank == 1 else 4)))


def another_call(rank, size):
    _begin(rank)
    tensor = torch.ones(4)
    _report(lambda: dist.broadcast(tensor, 0) if rank == 1 else dist.all_reduce(tensor))


def late(rank, size):
    """The call ends at its deadline, and the next tells why. Before it the watcher names who is late."""
    _begin(rank, 2)
    if rank == 1:
        time.sleep(5)
    logging.basicConfig(stream=sys.stdout, format="LOG %(message)s")
    threading.Timer(0.5, lambda: print("LATE", gdrx.stats()["late"], flush=True)).start()
    _report(lambda: dist.all_reduce(torch.ones(4)))


def late_in_a_wait(rank, size):
    """Who waits with a timeout is told at that, and the call goes on."""
    _begin(rank)
    if rank == 1:
        time.sleep(3)
    work = dist.all_reduce(torch.ones(4), async_op=True)
    _report(lambda: work.wait(datetime.timedelta(milliseconds=500)) if rank == 0 else time.sleep(1))


def aborted(rank, size):
    _begin(rank)
    if rank == 1:
        dist.group.WORLD._get_backend(torch.device("cuda")).abort()
    _report(lambda: dist.all_reduce(torch.ones(4)))


def killed(rank, size):
    _begin(rank)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _report(lambda: dist.all_reduce(torch.ones(4)))


def shrunk(rank, size):
    """The others go on without a dead rank, in a smaller group on the same GPUs. PyTorch gives that to CUDA tensors
    if the group was told its GPU."""
    _begin(rank, device_id=device(rank))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < 15:
            dist.all_reduce(torch.ones(4))
            torch.cuda.synchronize()
    except RuntimeError as error:
        said = str(error).splitlines()[0]
    group = dist.shrink_group([1])
    for count in (4, 1 << 20):
        tensor = torch.full((count,), float(rank))
        dist.all_reduce(tensor, group=group)
        assert torch.equal(tensor.cpu(), torch.full((count,), sum(range(size)) - 1.0, device="cpu")), tensor
    print(f"RAISED {time.monotonic() - begun:.3f} {said}\nFINALLY", flush=True)
    dist.destroy_process_group()
