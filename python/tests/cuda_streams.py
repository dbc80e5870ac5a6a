# SPDX-License-Identifier: Apache-2.0
"""Calls of CUDA tensors and their streams: order, waits that block nobody, futures, memory."""
import datetime
import threading
import time

import torch
import torch.distributed as dist

from collectives import of, same

BUSY = 400_000_000  # cycles of a kernel that sleeps: some 0.2 s


def total(size, count):
    return sum(of(r, count) for r in range(size))


def warm(rank, size):
    dist.all_reduce(of(rank, 1))
    torch.cuda.synchronize()


def test_wait_blocks_the_stream_and_not_the_host(rank, size):
    warm(rank, size)
    tensor = of(rank, 1000)
    torch.cuda._sleep(BUSY)
    begun = time.monotonic()
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert time.monotonic() - begun < 0.1, time.monotonic() - begun
    assert not torch.cuda.current_stream().query()
    same(tensor, total(size, 1000))


def test_a_call_without_async_blocks_no_host_either(rank, size):
    warm(rank, size)
    tensor = of(rank, 1000)
    torch.cuda._sleep(BUSY)
    begun = time.monotonic()
    dist.all_reduce(tensor)
    assert time.monotonic() - begun < 0.1 and not torch.cuda.current_stream().query()
    same(tensor, total(size, 1000))


def test_a_call_is_behind_what_its_caller_has_in_the_stream(rank, size):
    warm(rank, size)
    for later in (False, True, True):  # the last is behind one in the same stream of the group's
        tensor = torch.zeros(1000)
        torch.cuda._sleep(BUSY)
        tensor.copy_(of(rank, 1000))
        work = dist.all_reduce(tensor, async_op=later)
        if later:
            work.wait()
        tensor.mul_(2)
        same(tensor, 2 * total(size, 1000))


def test_a_call_without_async_is_in_the_callers_stream(rank, size):
    warm(rank, size)
    stream = torch.cuda.Stream()
    tensor = of(rank, 1000)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(BUSY)
        dist.all_reduce(tensor)
        done = stream.record_event()
    assert not done.query()
    assert torch.cuda.current_stream().query()  # has nothing of it
    done.synchronize()
    same(tensor, total(size, 1000))


def test_calls_of_two_streams_keep_their_order(rank, size):
    warm(rank, size)
    streams = [torch.cuda.Stream() for _ in range(2)]
    tensors = [of(rank, 1000 + i) for i in range(8)]
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
    for i, tensor in enumerate(tensors):
        with torch.cuda.stream(streams[i % 2]):
            dist.all_reduce(tensor)
    torch.cuda.synchronize()
    for i, tensor in enumerate(tensors):
        same(tensor, total(size, 1000 + i))


def test_a_work_tells_when_it_is_done(rank, size):
    warm(rank, size)
    torch.cuda._sleep(BUSY)
    work = dist.all_reduce(of(rank, 10), async_op=True)
    assert not work.is_completed()
    torch.cuda.synchronize()
    assert work.is_completed() and work.is_success()


def test_a_wait_with_a_timeout_blocks_and_raises(rank, size):
    warm(rank, size)
    tensor = of(rank, 10)
    torch.cuda._sleep(BUSY)
    work = dist.all_reduce(tensor, async_op=True)
    try:
        work.wait(datetime.timedelta(milliseconds=20))
    except RuntimeError as error:
        assert "timed out" in str(error), error
    else:
        raise AssertionError("it cannot have been done")
    begun = time.monotonic()
    assert work.wait(datetime.timedelta(seconds=20))
    assert time.monotonic() - begun > 0.02 and work.is_completed()
    same(tensor, total(size, 10))


def test_a_future_has_the_outputs_in_order(rank, size):
    warm(rank, size)
    tensor = of(rank, 1000)
    torch.cuda._sleep(BUSY)
    begun = time.monotonic()
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda ended: ended.value()[0] * 2)
    assert time.monotonic() - begun < 0.1
    same(doubled.wait(), 2 * total(size, 1000))


def test_tensors_that_nobody_keeps_stay(rank, size):
    warm(rank, size)
    for turn in range(10):
        source = of(rank, 100_000).repeat(size)
        output = torch.empty(100_000)
        torch.cuda._sleep(BUSY // 20)
        work = dist.reduce_scatter_tensor(output, source, async_op=True)
        del source
        if turn % 2 == 0:
            del work
        spoiled = [torch.full((100_000 * size,), -1.0) for _ in range(4)]
        if turn % 2 == 1:
            work.wait()
        torch.cuda.synchronize()
        same(output, total(size, 100_000))
        del spoiled


def test_many_works_that_nobody_waits_for_are_let_go(rank, size):
    warm(rank, size)
    for _ in range(3):
        dist.all_reduce(torch.ones(1 << 20), async_op=True)
    torch.cuda.synchronize()
    dist.all_reduce(torch.ones(1), async_op=True).wait()  # whoever calls next clears the shelf
    before = torch.cuda.memory_allocated()
    for _ in range(100):
        dist.all_reduce(torch.ones(1 << 20), async_op=True)
    torch.cuda.synchronize()
    dist.all_reduce(torch.ones(1), async_op=True).wait()
    assert torch.cuda.memory_allocated() <= before + (8 << 20), (before, torch.cuda.memory_allocated())


def test_another_thread_calls(rank, size):
    warm(rank, size)
    tensor, wrong = of(rank, 1000), []

    def work():
        try:
            torch.cuda.set_device(tensor.device)
            dist.all_reduce(tensor)
            torch.cuda.current_stream().synchronize()
        except RuntimeError as error:
            wrong.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and not wrong, wrong
    same(tensor, total(size, 1000))


def test_a_hook_of_autograd_calls(rank, size):
    weight = torch.ones(100, requires_grad=True)
    weight.register_hook(lambda gradient: (dist.all_reduce(gradient := gradient.clone()), gradient)[1])
    (weight * of(rank, 100)).sum().backward()
    same(weight.grad, total(size, 100))


def test_cpu_tensors_beside(rank, size):
    for count in (3, 3000):
        here, there = of(rank, count).cpu(), of(rank, count)
        works = [dist.all_reduce(tensor, async_op=True) for tensor in (here, there)]
        for work in works:
            work.wait()
        same(here.cuda(), total(size, count))
        same(there, total(size, count))


def test_a_barrier_of_gpus_blocks_until_all_have_come(rank, size):
    warm(rank, size)
    dist.barrier()
    begun = time.monotonic()
    if rank == 1:
        time.sleep(0.3)
    dist.barrier(device_ids=[torch.cuda.current_device()])
    assert time.monotonic() - begun > 0.25
