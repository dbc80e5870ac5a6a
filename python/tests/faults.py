# SPDX-License-Identifier: Apache-2.0
"""What a rank does that harms the others: programs of ranks for run.py, which looks at their output."""
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import ranks


def _report(begun, call):
    """One line: how long until the exception came, and what it says."""
    try:
        call()
    except RuntimeError as error:
        text = str(error).splitlines()[0]
        print(f"RAISED {time.monotonic() - begun:.3f} {text}", flush=True)
    else:
        print("PASSED", flush=True)


def _ready():
    """All have left the barrier, too, when this returns: a fault ends what others still have open."""
    dist.barrier()
    time.sleep(0.3)


def killed(rank, size):
    """Rank 1 is killed while the others wait for it."""
    ranks.join()
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    if rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic() + 0.3
    _report(begun, lambda: dist.all_reduce(tensor))
    _report(time.monotonic(), lambda: dist.all_reduce(tensor))  # it stays so


def killed_while_receiving(rank, size):
    """The same, in a receive of another rank."""
    ranks.join()
    _ready()
    if rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic() + 0.3
    other = {0: size - 1}.get(rank, 0)
    _report(begun, lambda: dist.recv(torch.empty(4), other))


def killed_with_a_child_alive(rank, size):
    """A child of the dead rank, as a DataLoader's worker, still holds its files."""
    ranks.join()
    dist.all_reduce(torch.ones(1))
    if rank == 1:
        if os.fork() == 0:
            os.close(1)
            os.close(2)
            time.sleep(5)
            os._exit(0)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic() + 0.3
    _report(begun, lambda: dist.all_reduce(torch.ones(1)))


def another_count(rank, size):
    ranks.join()
    _ready()
    _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4 + 2 * (rank == 1))))


def another_call(rank, size):
    ranks.join()
    _ready()
    if rank == 1:
        _report(time.monotonic(), lambda: dist.broadcast(torch.ones(4), 0))
    else:
        _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))


def another_type(rank, size):
    ranks.join()
    _ready()
    dtype = torch.int32 if rank == 1 else torch.float32
    _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4, dtype=dtype)))


def late(rank, size):
    """Rank 1 does not come: the call ends at its deadline."""
    ranks.join(timeout=datetime.timedelta(seconds=1))
    _ready()
    if rank == 1:
        time.sleep(3)
    _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))


def late_of_many(rank, size):
    """Every kind of call before it, one group more, and the group is destroyed as soon as the call has raised."""
    ranks.join(timeout=datetime.timedelta(seconds=1))
    other = dist.new_group(list(range(size)))
    parts = [torch.empty(2) for _ in range(size)]
    for group in (None, other):
        dist.all_reduce(torch.ones(4), group=group)
        dist.barrier(group)
        dist.all_gather(parts, torch.ones(2), group=group)
        dist.reduce_scatter_tensor(torch.ones(2), torch.ones(2 * size), group=group)
        dist.all_to_all_single(torch.ones(size), torch.ones(size), group=group)
        dist.broadcast(torch.ones(3), 0, group=group)
        dist.gather(torch.ones(2), parts if rank == 0 else None, 0, group=group)
    if rank == 0:
        dist.send(torch.ones(3), 1)
        dist.send(torch.ones(300), 1)
    if rank == 1:
        dist.recv(torch.ones(3))
        dist.recv(torch.ones(300), 0)
    _ready()
    if rank == 1:
        time.sleep(2.5)
    try:
        _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))
    finally:
        dist.destroy_process_group()


def extended(rank, size):
    """A call that may take longer, for once: rank 1 is late by more than the group's time."""
    from torch.distributed import distributed_c10d as c10d

    ranks.join(timeout=datetime.timedelta(seconds=1))
    _ready()
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    group._add_ephemeral_timeout(datetime.timedelta(seconds=3))
    if rank == 1:
        time.sleep(2)
    _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))
    c10d._add_ephemeral_timeout_for_all_pgs(datetime.timedelta(seconds=0.5))  # whichever PyTorch this is
    dist.all_reduce(torch.ones(4))
    if rank == 1:
        time.sleep(3)
    _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))


def stopped(rank, size):
    """Rank 1 is stopped for two seconds in the middle of things, and all goes on after it."""
    import gdrx

    ranks.join(timeout=datetime.timedelta(seconds=20))
    for _ in range(3):
        dist.all_reduce(torch.ones(8))
    dist.all_gather_into_tensor(torch.ones(2 * size), torch.ones(2))
    if rank == 0:
        dist.send(torch.ones(3), 1)
    if rank == 1:
        dist.recv(torch.ones(3), 0)
    _ready()
    if rank == 1:
        if os.fork() == 0:  # who wakes it up
            time.sleep(2)
            os.kill(os.getppid(), signal.SIGCONT)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGSTOP)
    begun = time.monotonic()
    work = dist.all_reduce(torch.ones(5), async_op=True)
    if rank != 1:
        time.sleep(max(0.0, begun + 1 - time.monotonic()))
        asked = gdrx.stats()
        print(f"ASKED {asked['late']} {asked['seconds']:.2f}", flush=True)
    work.wait()
    told = gdrx.stats()
    print(f"STATS {told['waited'].get(1, 0):.2f} {told['calls']['all_reduce']['count']} "
          f"{told['calls']['all_reduce']['seconds']:.2f}", flush=True)


def aborted(rank, size):
    """Rank 1 aborts: the others hear of it, and finally runs."""
    ranks.join()
    _ready()
    if rank == 1:
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
        _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))
        return
    try:
        _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))
    finally:
        print("FINALLY", flush=True)


def raises(rank, size):
    """Rank 1 ends by an exception: the others are told, and need not wait for their deadline."""
    ranks.join()
    _ready()
    if rank == 1:
        raise ValueError("a fault of the program")
    _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))


def without_destroy(rank, size):
    """Nobody calls destroy_process_group, and a rank is late at the end: nobody is harmed."""
    ranks.join()
    time.sleep(0.5 * rank)
    _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))


def goes_on(rank, size):
    """After a death the others make a new group and go on."""
    ranks.join()
    _ready()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    _report(begun, lambda: dist.all_reduce(torch.ones(4)))
    dist.destroy_process_group()
    alive = [r for r in range(size) if r != 1]
    dist.init_process_group("gdrx", init_method=f"file://{os.environ['TEST_STORE']}.again",
                            rank=alive.index(rank), world_size=len(alive))
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    print(f"SUM {tensor[0]:.0f}", flush=True)
    dist.destroy_process_group()


def shrinks(rank, size):
    """After a death the others shrink the group, and the new one is whole."""
    ranks.join()
    _ready()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _report(time.monotonic(), lambda: dist.all_reduce(torch.ones(4)))
    group = dist.shrink_group([1])
    assert group.size() == size - 1
    tensor = torch.ones(4)
    dist.all_reduce(tensor, group=group)
    print(f"SUM {tensor[0]:.0f}", flush=True)
    got = torch.empty(2)
    if group.rank() == 0:
        group.send([torch.ones(2)], 1, 0).wait()
    else:
        group.recv([got], 0, 0).wait()
        assert got.sum() == 2
    dist.destroy_process_group()


def forked(rank, size):
    """A child of fork may not use the group, and harms it in no way."""
    ranks.join()
    dist.all_reduce(torch.ones(2), async_op=True).wait()
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(2))
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(f"CHILD {status}", flush=True)
    dist.all_reduce(torch.ones(2))
    dist.destroy_process_group()
    sys.stdout.flush()
