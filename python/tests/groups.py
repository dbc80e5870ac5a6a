# SPDX-License-Identifier: Apache-2.0
"""Groups: new ones, split ones, meshes, timeouts, options, and what callers expect of a backend."""
import datetime
import threading
import time

import torch
import torch.distributed as dist

from collectives import of, same
from counted import Skip
from ranks import since


def cpu_backend(group=None):
    return (group or dist.group.WORLD)._get_backend(torch.device("cpu"))


def test_names(rank, size):
    assert dist.get_backend() == "gdrx"
    assert cpu_backend().name() == "gdrx"
    assert cpu_backend().rank() == rank and cpu_backend().size() == size


def test_new_groups(rank, size):
    everyone = dist.new_group()
    tensor = of(rank, 3)
    dist.all_reduce(tensor, group=everyone)
    same(tensor, sum(of(r, 3) for r in range(size)))
    pair = dist.new_group([0, 1])
    if rank < 2:
        tensor = of(rank, 3)
        dist.all_reduce(tensor, group=pair)
        same(tensor, of(0, 3) + of(1, 3))
        dist.destroy_process_group(pair)
    dist.destroy_process_group(everyone)


def test_beside_gloo(rank, size):
    gloo = dist.new_group(backend="gloo")
    named = dist.new_group(backend="cpu:gdrx")
    for group in (gloo, named):
        tensor = of(rank, 3)
        dist.all_reduce(tensor, group=group)
        same(tensor, sum(of(r, 3) for r in range(size)))


SPLITS_GPUS_ALONE = ("2.6", "2.9")  # seen by methods.py; of another version it would be news, and fails


def split(**how):
    try:
        return dist.split_group(**how)
    except RuntimeError as error:
        minor = ".".join(torch.__version__.split(".")[:2])
        if "No device associated" in str(error) and minor in SPLITS_GPUS_ALONE:
            raise Skip(f"PyTorch {torch.__version__}: split_group takes groups with a GPU alone") from error
        raise


def test_split(rank, size):
    group = split(split_ranks=[[0, 1]] + [[r] for r in range(2, size)])
    members = [0, 1] if rank < 2 else [rank]
    tensor = of(rank, 3)
    dist.all_reduce(tensor, group=group)
    same(tensor, sum(of(r, 3) for r in members))
    assert cpu_backend().comm_split_count() >= 1
    dist.destroy_process_group(group)


def redistribute(kind, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh(kind, (size,))
    whole = torch.arange(12 * size, dtype=torch.float32).view(2 * size, 6)
    cut = distribute_tensor(whole, mesh, [Shard(0)])
    same(cut.redistribute(mesh, [Replicate()]).to_local(), whole)
    same(cut.redistribute(mesh, [Shard(1)]).full_tensor(), whole)
    same((cut + cut).full_tensor(), whole + whole)


def test_device_mesh(rank, size):
    redistribute("cpu", size)


def test_timeouts(rank, size):
    backend = cpu_backend()
    assert backend.options._timeout == datetime.timedelta(minutes=30)
    backend._set_default_timeout(datetime.timedelta(seconds=77))
    assert backend.options._timeout == datetime.timedelta(seconds=77)
    backend._set_default_timeout(datetime.timedelta(minutes=30))
    work = dist.all_reduce(of(rank, 3), async_op=True)
    assert work.wait(datetime.timedelta(seconds=20))


def test_the_timeout_that_a_program_sets_later(rank, size):
    since("2.14", "_set_pg_timeout is for NCCL and Gloo")
    backend = cpu_backend()
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=77), dist.group.WORLD)
    assert backend.options._timeout == datetime.timedelta(seconds=77)
    backend._set_default_timeout(datetime.timedelta(minutes=30))


def test_what_callers_expect_of_a_backend(rank, size):
    backend = cpu_backend()
    assert backend._is_initialized() and backend.failure() == ""
    backend.perform_nocolor_split(torch.device("cpu"))
    assert isinstance(backend.uid, str)
    since("2.9", "supports_splitting, supports_coalescing and get_error are not all asked for")
    assert backend.get_error().value == 0 and backend.supports_splitting and backend.supports_coalescing


def test_explain(rank, size):
    import gdrx

    text = gdrx.explain(torch.ones(1000))
    assert "us" in text and len(text.splitlines()) > 2, text
    assert gdrx.failure() == ""
    assert gdrx.version().count(".") == 2


def test_stats(rank, size):
    import gdrx

    before = gdrx.stats()["calls"].get("all_reduce", {"count": 0, "bytes": 0, "seconds": 0})
    dist.all_reduce(torch.ones(1000))
    after = gdrx.stats()
    made = after["calls"]["all_reduce"]
    assert (made["count"], made["bytes"]) == (before["count"] + 1, before["bytes"] + 4000), after
    assert before["seconds"] < made["seconds"] < before["seconds"] + 60, after
    dist.barrier()
    if rank != 0:
        dist.recv(torch.empty(1), 0)
        time.sleep(0.4)  # late
        dist.all_reduce(torch.ones(4))
        return
    for peer in range(1, size):
        dist.send(torch.ones(1), peer)
    work = dist.all_reduce(torch.ones(4), async_op=True)
    time.sleep(0.2)
    seen = gdrx.stats()
    work.wait()
    assert seen["late"] == list(range(1, size)) and seen["seconds"] > 0.1 and "allReduce" in seen["text"], seen


def test_profiler_shows_the_calls(rank, size):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as seen:
        dist.all_reduce(of(rank, 100))
        work = dist.all_reduce(of(rank, 100), async_op=True)
        work.wait()
    names = [event.name for event in seen.events()]
    assert names.count("gdrx:all_reduce") == 2, names


def test_a_bracket_gives_one_work(rank, size):
    backend = cpu_backend()
    a, b = of(rank, 3), of(rank, 4)
    backend._start_coalescing()
    backend.allreduce([a])
    backend.allreduce([b])
    work = backend._end_coalescing()
    work.wait()
    same(a, sum(of(r, 3) for r in range(size)))
    same(b, sum(of(r, 4) for r in range(size)))
    value = work.get_future().wait()
    assert len(value) == 2


class TheirOptions:
    """As ProcessGroupNCCL.Options, which a PyTorch without CUDA lacks."""

    class config:
        max_ctas = 16

    is_high_priority_stream = True


def test_options(rank, size):
    import gdrx

    asked = gdrx.Options(gpu_blocks=8, reproducible=True)
    group = dist.new_group(backend="gdrx", pg_options=asked)
    held = cpu_backend(group).options
    assert (held.gpu_blocks, held.reproducible, held.is_high_priority_stream) == (8, True, False)
    theirs = cpu_backend(dist.new_group(backend="gdrx", pg_options=TheirOptions())).options
    assert (theirs.gpu_blocks, theirs.reproducible, theirs.is_high_priority_stream) == (16, False, True)
    for bad in (-1, 1025):
        try:
            gdrx.Options(gpu_blocks=bad)
        except ValueError as error:
            assert f"gpu_blocks is {bad}" in str(error), error
        else:
            raise AssertionError(f"{bad} blocks were taken")
    part = split(parent_pg=group, split_ranks=[list(range(size))])
    assert cpu_backend(part).options.gpu_blocks == 8 and cpu_backend(part).options.reproducible


def bits_of_sums(rank, size, group, pieces):
    """Of sums that depend on the order of additions, in calls of `pieces` elements."""
    sums = torch.rand(60_000, generator=torch.Generator("cpu").manual_seed(rank), device="cpu") - 0.5
    sums = sums.to(torch.get_default_device())
    for piece in sums.split(pieces):
        dist.all_reduce(piece, group=group)
    return sums


def reproducible(rank, size):
    """The same bits whatever the size of calls, from set_reproducible on."""
    import gdrx

    group = dist.new_group(backend="gdrx")
    bits_of_sums(rank, size, group, 60_000)
    gdrx.set_reproducible(group)
    whole = bits_of_sums(rank, size, group, 60_000)
    for pieces in (60_000, 7_001, 500):
        same(bits_of_sums(rank, size, group, pieces), whole)
    one_by_one = sum(torch.rand(60_000, generator=torch.Generator("cpu").manual_seed(r), device="cpu") - 0.5 for r in range(size))
    same(whole.cpu(), one_by_one)
    gdrx.set_reproducible(group, False)
    assert torch.allclose(bits_of_sums(rank, size, group, 60_000), whole, atol=1e-5)
    dist.destroy_process_group(group)


def estimated(*calls):
    """Microseconds that they are predicted to take one after another."""
    with dist._time_estimator(device=torch.device("cpu")) as estimate:
        for call in calls:
            call()
    return estimate.estimated_time


def test_time_estimates(rank, size):
    if not hasattr(dist, "_time_estimator"):
        raise Skip(f"PyTorch {torch.__version__} has no time estimates")
    small, large = of(rank, 3), torch.ones(1 << 20)
    parts = torch.ones(size << 10)
    if rank == 0:  # alone: nothing is sent
        short = estimated(lambda: dist.all_reduce(small))
        long = estimated(lambda: dist.all_reduce(large, async_op=True).wait())
        assert 0 < short < long, (short, long)
        assert abs(estimated(lambda: dist.all_reduce(small), lambda: dist.all_reduce(large)) - short - long) < 0.01 * long
        for call in (lambda: dist.broadcast(large, 0), lambda: dist.reduce(large, 1), lambda: dist.barrier(),
                     lambda: dist.all_gather_into_tensor(torch.empty(size << 10), torch.ones(1 << 10)),
                     lambda: dist.reduce_scatter_tensor(torch.empty(1 << 10), parts),
                     lambda: dist.all_to_all_single(torch.empty_like(parts), parts),
                     lambda: dist.send(large, 1), lambda: dist.recv(large, 1)):
            assert estimated(call) > 0
        both = estimated(lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, large, 1), dist.P2POp(dist.irecv, large, 1)]))
        assert 0 < both
        same(small, of(0, 3))
        assert estimated() == 0
        values = []
        estimated(lambda: values.extend(dist.all_reduce(small, async_op=True).get_future().wait()))
        assert values[0] is small or values[0].data_ptr() == small.data_ptr()
        for word, waits in (("monitored_barrier", dist.monitored_barrier), ("any rank", lambda: dist.recv(large))):
            try:
                estimated(waits)
                raise AssertionError(f"{word} was estimated")
            except RuntimeError as error:
                assert word in str(error) and "time estimate" in str(error), error
            cpu_backend()._end_time_estimate()  # PyTorch does not, after an error
    other = of(rank, 3)
    with dist._time_estimator(device=torch.device("cpu")):  # of this thread alone
        thread = threading.Thread(target=dist.all_reduce, args=(other,))
        thread.start()
        thread.join()
    same(other, sum(of(r, 3) for r in range(size)))
    dist.all_reduce(small)
    same(small, sum(of(r, 3) for r in range(size)))


def test_reproducible(rank, size):
    reproducible(rank, size)
