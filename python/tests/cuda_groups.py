# SPDX-License-Identifier: Apache-2.0
"""Groups for CUDA tensors: names, new ones, split ones, meshes, what they tell."""
import torch
import torch.distributed as dist

from collectives import of, same
from groups import redistribute


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
