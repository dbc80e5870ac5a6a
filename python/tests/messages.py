# SPDX-License-Identifier: Apache-2.0
"""Sends and receives: tags, any source, several messages a peer, odd sizes, two threads."""
import datetime
import threading
import time

import torch
import torch.distributed as dist

from collectives import of, same

COUNTS = (0, 1, 28, 29, 1000, 300_001)  # 28 floats are what a packet holds


def test_send_and_receive(rank, size):
    for count in COUNTS:
        if rank == 0:
            for to in range(1, size):
                dist.send(of(0, count) + to, to)
        else:
            tensor = torch.empty(count)
            assert dist.recv(tensor, 0) == 0
            same(tensor, of(0, count) + rank)


def test_tags_in_another_order(rank, size):
    for count in COUNTS:
        if rank == 0:
            works = [dist.isend(of(0, count) + tag, 1, tag=tag) for tag in range(4)]
        elif rank == 1:
            tensors = [torch.empty(count) for _ in range(4)]
            works = [dist.irecv(tensors[tag], 0, tag=tag) for tag in (3, 1)]
            works[0].wait()
            works += [dist.irecv(tensors[tag], 0, tag=tag) for tag in (2, 0)]
        else:
            works = []
        for work in works:
            work.wait()
        if rank == 1:
            for tag in range(4):
                same(tensors[tag], of(0, count) + tag)


def test_messages_of_one_tag_keep_their_order(rank, size):
    if rank == 0:
        works = [dist.isend(of(0, 100 * i) + i, 1) for i in range(6)]
    elif rank == 1:
        tensors = [torch.empty(100 * i) for i in range(6)]
        works = [dist.irecv(tensor, 0) for tensor in tensors]
    else:
        works = []
    for work in works:
        work.wait()
    if rank == 1:
        for i, tensor in enumerate(tensors):
            same(tensor, of(0, 100 * i) + i)


def test_from_any_source(rank, size):
    for count in COUNTS:
        if rank == 0:
            seen = []
            for _ in range(2 * (size - 1)):
                tensor = torch.empty(count)
                source = dist.recv(tensor, tag=7)
                seen.append(source)
                same(tensor, of(source, count))
            assert sorted(seen) == sorted(list(range(1, size)) * 2), seen
        else:
            dist.send(of(rank, count), 0, tag=7)
            dist.send(of(rank, count), 0, tag=7)
        dist.barrier()


def test_from_any_source_beside_a_named_one(rank, size):
    if rank == 0:
        named = torch.empty(3)
        work = dist.irecv(named, 1, tag=1)
        anyone = [torch.empty(3) for _ in range(size - 1)]
        sources = [dist.recv(tensor, tag=2) for tensor in anyone]
        work.wait()
        same(named, of(1, 3) + 50)
        for tensor, source in zip(anyone, sources):
            same(tensor, of(source, 3))
    else:
        dist.send(of(rank, 3), 0, tag=2)
        if rank == 1:
            dist.send(of(1, 3) + 50, 0, tag=1)


def test_a_batch_with_several_messages_a_peer(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    got = [torch.empty(10 * i) for i in (0, 1, 5000)]
    ops = [dist.P2POp(dist.isend, of(rank, tensor.numel()) + i, right) for i, tensor in enumerate(got)]
    ops += [dist.P2POp(dist.irecv, tensor, left) for tensor in got]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for i, tensor in enumerate(got):
        same(tensor, of(left, tensor.numel()) + i)


def test_messages_beside_collectives(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    got, sent = torch.empty(100_000), of(rank, 100_000)
    total = of(rank, 50_000)
    works = [dist.irecv(got, left), dist.all_reduce(total, async_op=True), dist.isend(sent, right)]
    dist.barrier()
    for work in works:
        work.wait()
    same(got, of(left, 100_000))
    same(total, sum(of(r, 50_000) for r in range(size)))


def test_a_second_thread_sends_while_the_first_waits(rank, size):
    if rank > 1:
        return
    got = torch.empty(5)
    waits = threading.Thread(target=lambda: dist.recv(got, 1 - rank, tag=rank))
    waits.start()
    time.sleep(0.1)
    dist.send(of(rank, 5), 1 - rank, tag=1 - rank)
    waits.join(20)
    assert not waits.is_alive()
    same(got, of(1 - rank, 5))


def test_a_second_thread_with_a_group_of_its_own(rank, size):
    groups = [dist.new_group(), dist.new_group()]

    def work(number):
        for count in range(200):
            tensor = of(rank, count)
            dist.all_reduce(tensor, group=groups[number])
            same(tensor, sum(of(r, count) for r in range(size)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for group in groups:
        dist.destroy_process_group(group)


def test_a_message_of_another_size_is_named_with_both(rank, size):
    if rank == 0:
        dist.send(of(0, 6), 1, tag=4)
        dist.send(of(0, 60), 1, tag=4)
    elif rank == 1:
        for sent, taken in ((24, 4), (240, 2)):
            try:
                dist.recv(torch.empty(taken), 0, tag=4)
            except RuntimeError as error:
                text = str(error)
                assert f"rank 0 sends {sent} bytes under tag 4" in text, text
                assert f"rank 1 takes {4 * taken}" in text, text
            else:
                raise AssertionError("a message of another size was taken")


def test_a_receive_that_is_late_harms_nobody(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    if rank == 1:
        backend._set_default_timeout(datetime.timedelta(milliseconds=200))
        begun = time.monotonic()
        try:
            dist.recv(torch.empty(2), 0, tag=9)
        except RuntimeError as error:
            assert "rank 1 waits for rank 0" in str(error), error
        else:
            raise AssertionError("nothing was sent")
        assert time.monotonic() - begun < 5
        backend._set_default_timeout(datetime.timedelta(minutes=5))
    dist.barrier()
    test_send_and_receive(rank, size)


def test_monitored_barrier(rank, size):
    for _ in range(3):
        dist.group.WORLD._get_backend(torch.device("cpu")).monitored_barrier(
            datetime.timedelta(seconds=20), True)


def test_monitored_barrier_names_who_is_missing(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    missing = size - 1
    if rank != missing:
        try:
            backend.monitored_barrier(datetime.timedelta(milliseconds=300), True)
        except RuntimeError as error:
            wanted = f"Ranks {missing} failed to pass" if rank == 0 else f"Ranks {missing}"
            assert wanted in str(error), error
        else:
            raise AssertionError("the barrier passed without a rank")
    else:
        time.sleep(1)


def test_who_leaves_with_an_open_receive_holds_nobody_up(rank, size):
    group = dist.new_group()
    if rank == 0:
        got = torch.empty(1)
        assert dist.recv(got, group=group) == 1  # listens to all others, too
    elif rank == 1:
        dist.send(torch.ones(1), 0, group=group)
    begun = time.monotonic()
    dist.destroy_process_group(group)
    assert time.monotonic() - begun < 5


def test_groups_are_destroyed_in_any_order(rank, size):
    groups = [dist.new_group(), dist.new_group()]
    begun = time.monotonic()
    for group in groups if rank == 0 else reversed(groups):
        dist.destroy_process_group(group)
    assert time.monotonic() - begun < 5
