# SPDX-License-Identifier: Apache-2.0
"""A rank of cuda_ranks.py: all tests of a module, with CUDA tensors where no device is named.

A test that fails on any rank ends its group, and the next has a new one.
"""
import datetime
import importlib
import os
import time
import traceback

import torch
import torch.distributed as dist

LIMIT = datetime.timedelta(seconds=20)


def join(number, rank, size):
    # Of groups one part is told its GPU at once, as DeviceMesh needs it to split; the others find out.
    told = {"device_id": device(rank)} if os.environ["TEST_PART"] == "cuda_groups" else {}
    dist.init_process_group("gdrx", init_method=f"file://{os.environ['TEST_STORE']}.{number}", rank=rank,
                            world_size=size, timeout=LIMIT, **told)


def device(rank):
    return torch.device("cuda", rank % torch.cuda.device_count())


def use_gpu(rank):
    torch.cuda.set_device(device(rank))
    torch.set_default_device(device(rank))


def outcome(store, number, rank, size, good):
    """Whether the test passed on all ranks."""
    store.set(f"{number}/{rank}", "ok" if good else "failed")
    keys = [f"{number}/{other}" for other in range(size)]
    store.wait(keys, datetime.timedelta(seconds=60))
    return all(store.get(key) == b"ok" for key in keys)


def run(rank, size):
    use_gpu(rank)
    module = importlib.import_module(os.environ["TEST_PART"])
    store = dist.FileStore(os.environ["TEST_STORE"] + ".outcomes", size)
    tests = [(name, test) for name, test in vars(module).items() if name.startswith("test_")]
    status = groups = 0
    join(groups, rank, size)
    for number, (name, test) in enumerate(tests):
        begun = time.monotonic()
        try:
            test(rank, size)
            torch.cuda.synchronize()
            good = True
        except BaseException:  # pylint: disable=broad-except
            print(f"FAILED {name} on rank {rank}\n{traceback.format_exc()}", flush=True)
            good = False
        if outcome(store, number, rank, size, good):
            print(f"ok {name} ({time.monotonic() - begun:.2f} s)", flush=True)
            continue
        if good:
            print(f"FAILED {name} elsewhere", flush=True)
        status = 1
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
        dist.destroy_process_group()
        groups += 1
        join(groups, rank, size)
    dist.destroy_process_group()
    return status
