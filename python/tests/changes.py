# SPDX-License-Identifier: Apache-2.0
"""A group whose members change: programs of ranks for run.py, which looks at what they say."""
import datetime
import os
import signal
import time

import torch
import torch.distributed as dist

import ranks

SOON = datetime.timedelta(seconds=15)


class Rendezvous:
    """How the ranks of the test tell each other their handles: by a store that no group needs."""

    def __init__(self):
        self.store = dist.FileStore(os.environ["TEST_STORE"] + "-handles", -1)
        self.store.set_timeout(SOON)
        self.rounds = 0

    def handles(self, rank, members):
        self.rounds += 1
        self.store.set(f"{self.rounds}/{rank}", dist._get_reconfigure_handle())
        return [self.store.get(f"{self.rounds}/{member}").decode() for member in members]


def refused(call, *words):
    try:
        call()
    except RuntimeError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(f"no error with {words}")


def add_up(rank, members):
    """A sum of all, and a message to the next."""
    tensor = torch.tensor([2.0**rank])
    dist.all_reduce(tensor)
    assert tensor == sum(2.0**member for member in members), tensor
    dist.group.WORLD._get_backend(torch.device("cpu")).monitored_barrier(SOON)  # a newcomer has made none before
    place, size = dist.get_rank(), dist.get_world_size()
    assert size == len(members) and members[place] == rank
    if size > 1:
        got = torch.empty(1)
        sent = dist.isend(torch.tensor([float(rank)]), (place + 1) % size)
        dist.recv(got, (place - 1) % size)
        sent.wait()
        assert got == members[place - 1], got


def grows_and_shrinks(rank, size):
    """Two of three ranks, in another order; then one dies, and the third comes in its place."""
    ranks.join(timeout=SOON, enable_reconfigure=True)
    assert dist._supports_reconfigure()
    refused(lambda: dist.all_reduce(torch.ones(1)), "reconfigure")
    meet = Rendezvous()
    handles = meet.handles(rank, range(3))
    if rank != 2:
        assert dist._reconfigure(1, [handles[1], handles[0]]).wait()
        add_up(rank, [1, 0])
        old = handles[rank]
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        refused(lambda: [dist.all_reduce(torch.ones(1)) for _ in range(9999) if not time.sleep(0.001)], "rank")
        refused(lambda: dist._reconfigure(2, [old]), "handle is not among")
    handles = meet.handles(rank, [0, 2])
    dist._reconfigure(3, handles).wait()
    add_up(rank, [0, 2])
    print("GREW", flush=True)
    dist.destroy_process_group()


def goes_wrong(rank, size):
    """Each error is told soon, and leaves a group that may be reconfigured again."""
    ranks.join(timeout=SOON)  # it has all ranks from the beginning
    add_up(rank, list(range(size)))
    meet = Rendezvous()
    handles = meet.handles(rank, range(size))
    refused(lambda: dist._reconfigure(1, ["gdrx:1:x"]), "no handle")
    refused(lambda: dist._reconfigure(1, [handles[rank]] * 2), "twice")
    begun = time.monotonic()
    if rank == 0:
        refused(lambda: dist._reconfigure(2, handles, timeout=datetime.timedelta(seconds=1)), "1000 ms")
        assert 0.9 < time.monotonic() - begun < 3
        refused(lambda: dist.all_reduce(torch.ones(1)), "reconfigure")
    handles = meet.handles(rank, range(size))
    refused(lambda: dist._reconfigure(10 + rank, handles).wait(), "another uuid")
    handles = meet.handles(rank, range(size))
    refused(lambda: dist._reconfigure(10 + rank, handles).wait(), "was used before")
    handles = meet.handles(rank, range(size))
    dist._reconfigure(20, set(handles)).wait()  # a set: in the order of the ranks until now
    add_up(rank, list(range(size)))
    open_call = dist.all_reduce(torch.ones(1), async_op=True) if rank == 0 else None
    handles = meet.handles(rank, range(size))
    dist._reconfigure(21, handles).wait()
    if open_call:
        refused(open_call.wait)  # by this rank, or by another that was earlier
    add_up(rank, list(range(size)))
    print("RIGHT", flush=True)
    dist.destroy_process_group()
