# SPDX-License-Identifier: Apache-2.0
"""Groups for CUDA tensors: names, new ones, split ones, meshes, what they tell."""
import torch
import torch.distributed as dist

from collectives import of, same
from groups import redistribute, reproducible


def total(size, count):
    return sum(of(r, count) for r in range(size))


def summed(group, members, rank, where="cuda"):
    tensor = of(rank, 1000).to(where)
    dist.all_reduce(tensor, group=group)
    same(tensor, sum(of(r, 1000) for r in members))


def test_names(rank, size):
    for name in ("cpu:gloo,cuda:gdrx", "cpu:gdrx,cuda:gdrx", "cuda:gdrx", "gdrx"):
        group = dist.new_group(backend=name)
        summed(group, range(size), rank)
        if "cpu" in name:
            summed(group, range(size), rank, "cpu")
        dist.destroy_process_group(group)


def test_groups_of_some_ranks(rank, size):
    pairs = [dist.new_group([r, r + 1]) for r in range(0, size - 1, 2)]
    if rank // 2 < len(pairs):
        summed(pairs[rank // 2], [rank - rank % 2, rank - rank % 2 + 1], rank)
    everyone = [dist.new_group() for _ in range(3)]
    for group in everyone:
        summed(group, range(size), rank)
    for group in everyone:
        dist.destroy_process_group(group)


def test_split(rank, size):
    if not hasattr(dist, "split_group") or size % 2:
        return
    group = dist.split_group(split_ranks=[[0, 1]] + [[r] for r in range(2, size)])
    summed(group, [0, 1] if rank < 2 else [rank], rank)
    dist.destroy_process_group(group)


def test_device_mesh(rank, size):
    redistribute("cuda", size)


def test_time_estimates(rank, size):
    if not hasattr(dist, "_time_estimator"):
        return
    small, large = of(rank, 1000).to("cuda"), torch.ones(1 << 22, device="cuda")
    dist.all_reduce(small.clone())  # makes the communicator

    def estimated(*calls):
        with dist._time_estimator(device=torch.device("cuda")) as estimate:
            for call in calls:
                call()
        return estimate.estimated_time

    if rank == 0:  # alone: nothing starts
        short = estimated(lambda: dist.all_reduce(small))
        long = estimated(lambda: dist.all_reduce(large, async_op=True).wait())
        assert 0 < short < long, (short, long)
        message = estimated(lambda: dist.send(large, 1))
        both = estimated(lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, large, 1), dist.P2POp(dist.irecv, large, 1)]))
        assert 0 < message <= both, (message, both)
        same(small.cpu(), of(0, 1000))
    summed(None, range(size), rank)


def test_what_a_group_tells(rank, size):
    import gdrx

    dist.all_reduce(of(rank, 1000))
    assert gdrx.stats()["calls"]["all_reduce"]["bytes"] >= 4000 and gdrx.failure() == ""
    text = gdrx.explain(torch.ones(1000))
    assert "one-shot" in text, text
    assert dist.group.WORLD._get_backend(torch.device("cuda")).get_error().value == 0


def test_profiler_shows_the_calls(rank, size):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as seen:
        dist.all_reduce(of(rank, 100))
        dist.all_reduce(of(rank, 100), async_op=True).wait()
    names = [event.name for event in seen.events()]
    assert names.count("gdrx:all_reduce") == 2, names


def test_reproducible(rank, size):
    reproducible(rank, size)


def test_a_budget_of_multiprocessors(rank, size):
    import gdrx

    for blocks in (1, 4):
        group = dist.new_group(backend="gdrx", pg_options=gdrx.Options(gpu_blocks=blocks))
        for count in (10, 1 << 20):
            tensor = of(rank, count)
            dist.all_reduce(tensor, group=group)
            same(tensor, sum(of(r, count) for r in range(size)))
        dist.destroy_process_group(group)


def test_memory_of_a_group_is_told(rank, size):
    import gdrx

    dist.all_reduce(of(rank, 10))
    assert gdrx.stats()["gpu_memory"] >= 1 << 20, gdrx.stats()


def registered_sums(group, size, rank, pool):
    with torch.cuda.use_mem_pool(pool):
        parts = [torch.empty(3 << 20, device="cuda") for _ in range(3)]  # a segment each
    backend = group._get_backend(torch.device("cuda"))
    for _ in range(2):
        backend.register_mem_pool(pool)
        for number, part in enumerate(parts):
            part.fill_(rank + number)
            dist.all_reduce(part, group=group)
            same(part, torch.full_like(part, sum(r + number for r in range(size))))
        torch.cuda.synchronize()
        backend.deregister_mem_pool(pool)
    return parts


def test_a_pool_of_memory_is_mapped_by_all(rank, size):
    group = dist.new_group(backend="gdrx")
    pool = torch.cuda.MemPool(group._get_backend(torch.device("cuda")).mem_allocator)
    kept = [torch.empty(1 << 20, device="cuda") for _ in range(rank)]  # addresses differ
    registered_sums(group, size, rank, pool)
    del kept
    dist.destroy_process_group(group)


def refused(call, *words):
    try:
        call()
    except (ValueError, RuntimeError) as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("it was not refused")


def test_a_pool_that_differs_is_refused_everywhere(rank, size):
    group = dist.new_group(backend="gdrx")
    backend = group._get_backend(torch.device("cuda"))
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        parts = [torch.empty(3 << 20, device="cuda") for _ in range(2 if rank == 1 else 1)]
    refused(lambda: backend.register_mem_pool(pool), "rank 1 has 2 segments", "rank 0 1 of")
    refused(lambda: backend.deregister_mem_pool(pool), "not registered")
    plain = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(plain):
        parts += [torch.empty(3 << 20, device="cuda") for _ in range(2)]
    refused(lambda: backend.register_mem_pool(plain), "mem_allocator")
    summed(group, range(size), rank)
    dist.destroy_process_group(group)
