# SPDX-License-Identifier: Apache-2.0
"""Calls that a CUDA graph records, and that run when it is launched."""
import torch
import torch.distributed as dist

from collectives import of, same
from elements import refused

LAUNCHES = 3


def replayed(rank, size, call, wanted, count=1000, capture=None):
    """`call` gets a tensor that changes between launches and gives what `wanted` must equal."""
    tensor = of(rank, count)
    call(tensor.clone())  # the communicator, and what its first calls load
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call(tensor * 1)
    for turn in range(LAUNCHES):
        tensor.copy_(of(rank, count) + turn)
        graph.replay()
        torch.cuda.synchronize()
        same(result, wanted(turn))


def total(size, count, turn):
    return sum(of(r, count) + turn for r in range(size))


def test_the_first_call_is_not_recorded(rank, size):
    def capture():
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            dist.all_reduce(torch.ones(3))

    refused(capture, "before the capture")
    torch.cuda.synchronize()
    dist.all_reduce(torch.ones(3))


def test_all_reduce(rank, size):
    for later in (False, True):
        def call(tensor):
            work = dist.all_reduce(tensor, async_op=later)
            if later:
                work.wait()
            return tensor + 0

        for count in (5, 1000, 2_000_000):
            replayed(rank, size, call, lambda turn: total(size, count, turn), count)


def test_other_sums(rank, size):
    def scattered(tensor):
        output = torch.empty(tensor.numel() // size)
        dist.reduce_scatter_tensor(output, tensor, async_op=True).wait()
        return output

    def rooted(tensor):
        dist.reduce(tensor, 0)
        return tensor if rank == 0 else torch.zeros_like(tensor)

    def averaged(tensor):
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        return tensor

    def scaled(tensor):
        dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(2.0))
        return tensor

    count = 840
    replayed(rank, size, scattered, lambda turn: total(size, count, turn).chunk(size)[rank], count)
    replayed(rank, size, rooted, lambda turn: total(size, count, turn) * (rank == 0), count)
    replayed(rank, size, averaged, lambda turn: total(size, count, turn) / size, count)
    replayed(rank, size, scaled, lambda turn: 2 * total(size, count, turn), count)


def test_moves(rank, size):
    def gathered(tensor):
        output = torch.empty(tensor.numel() * size)
        dist.all_gather_into_tensor(output, tensor, async_op=True).wait()
        return output

    def lists(tensor):
        outputs = [torch.empty_like(tensor) for _ in range(size)]
        dist.all_gather(outputs, tensor)
        return torch.cat(outputs)

    def sent(tensor):
        dist.broadcast(tensor, 1)
        return tensor

    def turned(tensor):
        output = torch.empty_like(tensor)
        dist.all_to_all_single(output, tensor)
        return output

    def round_the_ring(tensor):
        output = torch.empty_like(tensor)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor, (rank + 1) % size),
                                            dist.P2POp(dist.irecv, output, (rank - 1) % size)]):
            work.wait()
        return output

    def everything(turn):
        return torch.cat([of(r, 840) + turn for r in range(size)])

    replayed(rank, size, gathered, everything, 840)
    replayed(rank, size, lists, everything, 840)
    replayed(rank, size, sent, lambda turn: of(1, 840) + turn, 840)
    replayed(rank, size, turned,
             lambda turn: torch.cat([(of(r, 840) + turn).chunk(size)[rank] for r in range(size)]), 840)
    replayed(rank, size, round_the_ring, lambda turn: of((rank - 1) % size, 840) + turn, 840)


def test_a_barrier_and_calls_outside_between_launches(rank, size):
    def call(tensor):
        dist.barrier(device_ids=[torch.cuda.current_device()])
        dist.all_reduce(tensor)
        return tensor

    tensor = of(rank, 500)
    call(tensor.clone())
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call(tensor * 1)
    for turn in range(LAUNCHES):
        tensor.copy_(of(rank, 500) + turn)
        graph.replay()
        torch.cuda.synchronize()
        same(result, total(size, 500, turn))
        other = of(rank, 100)
        dist.all_reduce(other)
        same(other, total(size, 100, 0))
        torch.cuda.synchronize()


def test_memory_of_calls_that_nobody_waits_for_is_not_used_again(rank, size):
    def call(tensor):
        source, output = tensor.repeat(size), torch.empty_like(tensor)
        dist.reduce_scatter_tensor(output, source, async_op=True)  # nobody waits for this one
        del source
        spoiled = [torch.full((tensor.numel() * size,), -1.0) for _ in range(2)]
        work = dist.all_reduce(torch.ones(1), async_op=True)
        work.wait()
        return output + 0 * spoiled[0][:tensor.numel()]

    replayed(rank, size, call, lambda turn: total(size, 100_000, turn), 100_000)
