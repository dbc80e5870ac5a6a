# SPDX-License-Identifier: Apache-2.0
"""Sends and receives of CUDA tensors: by order, in batches, between two ranks alone."""
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllgatherOptions

from collectives import of, same
from elements import refused

COUNTS = (0, 1, 1000, 300_001)


def test_two_ranks_talk_before_all_have_met(rank, size):
    if rank == size - 1:
        for count in COUNTS:
            dist.send(of(rank, count), 0)
    elif rank == 0:
        for count in COUNTS:
            tensor = torch.zeros(count)
            dist.recv(tensor, size - 1)
            same(tensor, of(size - 1, count))


def test_send_and_receive(rank, size):
    dist.all_reduce(of(rank, 1))
    for count in COUNTS:
        if rank == 0:
            for to in range(1, size):
                dist.send(of(0, count) + to, to, tag=to)
        else:
            tensor = torch.empty(count)
            assert dist.recv(tensor, 0, tag=rank) == 0
            same(tensor, of(0, count) + rank)


def test_a_batch_with_several_messages_a_peer(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    got = [torch.empty(count) for count in (0, 1, 5000, 2_000_001)]
    ops = [dist.P2POp(dist.isend, of(rank, tensor.numel()) + i, right) for i, tensor in enumerate(got)]
    ops += [dist.P2POp(dist.irecv, tensor, left) for tensor in got]
    for _ in range(3):
        works = dist.batch_isend_irecv(ops)
        assert len(works) == 1
        works[0].wait()
        for i, tensor in enumerate(got):
            same(tensor, of(left, tensor.numel()) + i)
            tensor.zero_()


def test_a_batch_into_what_is_not_contiguous(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    got = torch.zeros(40, 20).t()
    ops = [dist.P2POp(dist.irecv, got, left), dist.P2POp(dist.isend, of(rank, 800).view(40, 20).t(), right)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    same(got, of(left, 800).view(40, 20).t())


def test_messages_that_wait_for_nobody(rank, size):
    dist.all_reduce(of(rank, 1))
    right, left = (rank + 1) % size, (rank - 1) % size
    for count in (1, 900):  # each is in the receiver's memory before that asks
        work = dist.isend(of(rank, count), right)
        got = torch.empty(count)
        dist.recv(got, left)
        work.wait()
        same(got, of(left, count))


def test_a_bracket_of_collectives_and_messages(rank, size):
    from torch.distributed.distributed_c10d import _coalescing_manager

    right, left = (rank + 1) % size, (rank - 1) % size
    sums, gathered, got = of(rank, 100), torch.empty(50 * size), torch.empty(77)
    here = torch.device("cuda", torch.cuda.current_device())
    with _coalescing_manager(None, here, async_ops=True) as bracket:
        dist.isend(of(rank, 77), right)
        dist.group.WORLD._get_backend(here).allreduce([sums])
        dist.group.WORLD._get_backend(here)._allgather_base(gathered, of(rank, 50), AllgatherOptions())
        dist.irecv(got, left)
    bracket.wait()
    same(got, of(left, 77))
    same(sums, sum(of(r, 100) for r in range(size)))
    same(gathered, torch.cat([of(r, 50) for r in range(size)]))


def test_what_is_refused(rank, size):
    refused(lambda: dist.recv(torch.empty(1)), "any rank", "cuda", "src=")
    refused(lambda: dist.all_gather_into_tensor(torch.empty(size, device="cpu"), torch.ones(1)), "one device")
    refused(lambda: dist.all_reduce(torch.eye(3).to_sparse()), "sparse")
