# SPDX-License-Identifier: Apache-2.0
"""Every collective against what it must give, computed here; 0 elements, odd and large counts."""
import torch
import torch.distributed as dist

COUNTS = (0, 1, 5, 1000, 300_001)


def of(rank: int, count: int, dtype=torch.float32):
    """What rank `rank` brings: each element tells its rank and its place."""
    return (torch.arange(count) % 13 + 100 * rank).to(dtype)


def same(got, wanted):
    assert got.shape == wanted.shape and got.dtype == wanted.dtype, (got.shape, wanted.shape)
    got, wanted = got.cpu(), wanted.cpu()  # which know every type
    assert torch.equal(got, wanted), f"got {got.flatten()[:8]}, wanted {wanted.flatten()[:8]}"


def test_all_reduce(rank, size):
    for count in COUNTS:
        tensor = of(rank, count)
        work = dist.all_reduce(tensor, async_op=True)
        work.wait()
        same(tensor, sum(of(r, count) for r in range(size)))
        value = work.get_future().wait()
        assert isinstance(value, list) and value[0].data_ptr() == tensor.data_ptr()


def test_all_reduce_coalesced(rank, size):
    for counts in ((3, 0, 7), (300_000, 2), (1,)):
        tensors = [of(rank, count) for count in counts]
        dist.all_reduce_coalesced(tensors)
        for tensor, count in zip(tensors, counts):
            same(tensor, sum(of(r, count) for r in range(size)))


def test_all_reduce_coalesced_of_several_types(rank, size):
    tensors = [of(rank, 4), of(rank, 4, torch.int64)]
    with dist._coalescing_manager():
        for tensor in tensors[:1]:
            dist.all_reduce(tensor)
    dist.group.WORLD._get_backend(torch.device("cpu"))
    opts = dist.AllreduceCoalescedOptions()
    dist.group.WORLD._get_backend(torch.device("cpu")).allreduce_coalesced(
        [tensors[1], second := of(rank, 4)], opts).wait()
    same(tensors[0], sum(of(r, 4) for r in range(size)))
    same(tensors[1], sum(of(r, 4, torch.int64) for r in range(size)))
    same(second, sum(of(r, 4) for r in range(size)))


def test_reduce(rank, size):
    for root in range(size):
        for count in COUNTS:
            tensor = of(rank, count)
            dist.reduce(tensor, root)
            if rank == root:
                same(tensor, sum(of(r, count) for r in range(size)))


def test_broadcast(rank, size):
    for root in range(size):
        for count in COUNTS:
            tensor = of(rank, count)
            dist.broadcast(tensor, root)
            same(tensor, of(root, count))


def test_all_gather(rank, size):
    for count in COUNTS:
        outputs = [torch.empty(count) for _ in range(size)]
        dist.all_gather(outputs, of(rank, count))
        for r in range(size):
            same(outputs[r], of(r, count))
        whole = torch.empty(count * size)
        if count > 0:  # the list's tensors lie in one buffer: nothing is copied
            dist.all_gather(list(whole.chunk(size)), of(rank, count))
            same(whole, torch.cat([of(r, count) for r in range(size)]))


def test_all_gather_of_uneven_lists(rank, size):
    counts = [3 * r for r in range(size)]
    outputs = [torch.empty(count) for count in counts]
    dist.all_gather(outputs, of(rank, counts[rank]))
    for r in range(size):
        same(outputs[r], of(r, counts[r]))


def test_all_gather_into_tensor(rank, size):
    for count in COUNTS:
        output = torch.empty(count * size)
        dist.all_gather_into_tensor(output, of(rank, count))
        same(output, torch.cat([of(r, count) for r in range(size)]))
        if count > 0:  # in place
            dist.all_gather_into_tensor(output, output.chunk(size)[rank])
            same(output, torch.cat([of(r, count) for r in range(size)]))


def test_all_gather_coalesced(rank, size):
    counts = (4, 0, 1000)
    outputs = [torch.empty(count * size) for count in counts]
    with dist._coalescing_manager():
        for output, count in zip(outputs, counts):
            dist.all_gather_into_tensor(output, of(rank, count))
    for output, count in zip(outputs, counts):
        same(output, torch.cat([of(r, count) for r in range(size)]))


def test_all_gather_coalesced_of_lists(rank, size):
    counts = (4, 0, 1000)
    outputs = [[torch.empty(count) for count in counts] for _ in range(size)]
    dist.all_gather_coalesced(outputs, [of(rank, count) for count in counts])
    for r in range(size):
        for output, count in zip(outputs[r], counts):
            same(output, of(r, count))


def test_reduce_scatter(rank, size):
    for count in COUNTS:
        inputs = [of(rank, count) + block for block in range(size)]
        output = torch.empty(count)
        dist.reduce_scatter(output, inputs)
        same(output, sum(of(r, count) + rank for r in range(size)))


def test_reduce_scatter_of_uneven_lists(rank, size):
    counts = [5 * r for r in range(size)]
    output = torch.empty(counts[rank])
    dist.reduce_scatter(output, [of(rank, count) + block for block, count in enumerate(counts)])
    same(output, sum(of(r, counts[rank]) + rank for r in range(size)))


def test_reduce_scatter_tensor(rank, size):
    for count in COUNTS:
        output = torch.empty(count)
        dist.reduce_scatter_tensor(output, torch.cat([of(rank, count) + b for b in range(size)]))
        same(output, sum(of(r, count) + rank for r in range(size)))


def test_reduce_scatter_coalesced(rank, size):
    counts = (4, 0, 1000)
    outputs = [torch.empty(count) for count in counts]
    with dist._coalescing_manager():
        for output, count in zip(outputs, counts):
            dist.reduce_scatter_tensor(output, of(rank, count).repeat(size))
    for output, count in zip(outputs, counts):
        same(output, sum(of(r, count) for r in range(size)))


def test_all_to_all(rank, size):
    for extra in (0, 1, 4000):
        inputs = [of(rank, extra * (to + 1)) + to for to in range(size)]
        outputs = [torch.empty(extra * (rank + 1)) for _ in range(size)]
        dist.all_to_all(outputs, inputs)
        for r in range(size):
            same(outputs[r], of(r, extra * (rank + 1)) + rank)


def test_all_to_all_single(rank, size):
    for rows in (0, 1, 700):
        tensor = torch.stack([of(rank, 3) + 10 * to for to in range(size) for _ in range(rows)]
                             or [torch.empty(3)])[:rows * size]
        output = torch.empty(rows * size, 3)
        dist.all_to_all_single(output, tensor)
        wanted = [of(r, 3) + 10 * rank for r in range(size) for _ in range(rows)]
        same(output, torch.stack(wanted) if wanted else torch.empty(0, 3))


def test_all_to_all_single_with_splits(rank, size):
    sends = [to + rank for to in range(size)]
    takes = [r + rank for r in range(size)]
    output = torch.empty(sum(takes), 2)
    dist.all_to_all_single(output, torch.full((sum(sends), 2), float(rank)), takes, sends)
    same(output, torch.cat([torch.full((r + rank, 2), float(r)) for r in range(size)]))


def test_gather(rank, size):
    for root in range(size):
        for count in COUNTS:
            outputs = [torch.empty(count) for _ in range(size)] if rank == root else None
            dist.gather(of(rank, count), outputs, dst=root)
            for r in range(size if rank == root else 0):
                same(outputs[r], of(r, count))


def test_scatter(rank, size):
    for root in range(size):
        for count in COUNTS:
            inputs = [of(root, count) + to for to in range(size)] if rank == root else None
            output = torch.empty(count)
            dist.scatter(output, inputs, src=root)
            same(output, of(root, count) + rank)


def test_tensors_that_are_not_contiguous(rank, size):
    wide = torch.zeros(4, 6)
    wide[:, ::2] = of(rank, 12).view(4, 3)
    dist.all_reduce(wide[:, ::2])
    same(wide[:, ::2].contiguous().flatten(), sum(of(r, 12) for r in range(size)))
    assert torch.equal(wide[:, 1::2], torch.zeros(4, 3))
    output = torch.zeros(3, 4 * size).t()
    dist.all_gather_into_tensor(output, of(rank, 12).view(3, 4).t())
    same(output.contiguous(), torch.cat([of(r, 12).view(3, 4).t() for r in range(size)]))
    tensor = of(rank, 12).view(3, 4).t()
    dist.broadcast(tensor, 1)
    same(tensor, of(1, 12).view(3, 4).t())


def test_objects(rank, size):
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    assert gathered == [{"rank": r, "text": "x" * r} for r in range(size)]
    objects = [f"of {rank}", rank]
    dist.broadcast_object_list(objects, src=1)
    assert objects == ["of 1", 1]
    taken = [None]
    dist.scatter_object_list(taken, [(r, "for you") for r in range(size)] if rank == 0 else None)
    assert taken == [(rank, "for you")]


def test_functional(rank, size):
    from torch.distributed import _functional_collectives as funcol

    group = dist.group.WORLD
    same(funcol.wait_tensor(funcol.all_reduce(of(rank, 7), "sum", group)),
         sum(of(r, 7) for r in range(size)))
    same(funcol.wait_tensor(funcol.all_gather_tensor(of(rank, 7), 0, group)),
         torch.cat([of(r, 7) for r in range(size)]))
    same(funcol.wait_tensor(funcol.reduce_scatter_tensor(of(rank, 7).repeat(size), "sum", 0, group)),
         sum(of(r, 7) for r in range(size)))


def test_many_calls_in_flight(rank, size):
    tensors = [of(rank, 100 + i) for i in range(50)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait()
    for i, tensor in enumerate(tensors):
        same(tensor, sum(of(r, 100 + i) for r in range(size)))


def test_a_call_that_nobody_waits_for_ends_its_future(rank, size):
    import threading

    ended = threading.Event()
    works = []
    for count in (10, 200_000):
        work = dist.all_reduce(of(rank, count), async_op=True)
        work.get_future().then(lambda future: ended.set())
        works.append(work)
    assert ended.wait(10), "the future did not end by itself"


def test_the_number_of_calls(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    before = backend._get_sequence_number_for_group()
    dist.all_reduce(of(rank, 1))
    assert backend._get_sequence_number_for_group() == before + 1
