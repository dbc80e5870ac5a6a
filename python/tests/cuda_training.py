# SPDX-License-Identifier: Apache-2.0
"""Ways to train on GPUs, each 20 steps, beside the same steps in one process."""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

import ranks
from cuda_all import device, use_gpu

STEPS, ROWS, WIDTH = 20, 32, 256


def model():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(16, WIDTH)]
    for _ in range(3):
        layers += [torch.nn.GELU(), torch.nn.Linear(WIDTH, WIDTH)]
    return torch.nn.Sequential(*layers, torch.nn.GELU(), torch.nn.Linear(WIDTH, 8))


def batch(step, size):
    """Of all ranks: each takes its rows."""
    inputs = torch.randn(ROWS * size, 16, generator=torch.Generator("cpu").manual_seed(step), device="cpu").cuda()
    return inputs, inputs[:, :8].sin()


def rows(tensor, rank):
    return tensor[rank * ROWS:(rank + 1) * ROWS]


def optimizer_of(trained):
    return torch.optim.SGD(trained.parameters(), lr=0.05, momentum=0.9)


def step_of(trained, optimizer, inputs, target):
    loss = mse_loss(trained(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def alone(size):
    trained = model()
    optimizer = optimizer_of(trained)
    return [float(step_of(trained, optimizer, *batch(step, size))) for step in range(STEPS)]


def together(trained, rank, size):
    optimizer, losses = optimizer_of(trained), []
    for step in range(STEPS):
        inputs, target = batch(step, size)
        loss = step_of(trained, optimizer, rows(inputs, rank), rows(target, rank)).clone()
        dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        losses.append(float(loss))
    return losses


def data_parallel(rank, size):
    return together(DistributedDataParallel(model(), device_ids=[device(rank).index], bucket_cap_mb=1), rank, size)


def sharded(rank, size):
    mesh = init_device_mesh("cuda", (size,))
    trained = model()
    for layer in trained[::2]:
        fully_shard(layer, mesh=mesh)
    return together(fully_shard(trained, mesh=mesh), rank, size)


def whole_step_in_a_graph(rank, size):
    """Forward, backward, the sums of gradients and the optimizer: one graph, launched for each step."""
    trained = model()
    optimizer = optimizer_of(trained)
    inputs, target = (rows(part, rank).clone() for part in batch(0, size))

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = mse_loss(trained(inputs), target)
        loss.backward()
        works = [dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, async_op=True) for p in trained.parameters()]
        for work in works:
            work.wait()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        return mean

    begun = [parameter.detach().clone() for parameter in trained.parameters()]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mean = step()
    with torch.no_grad():  # as if nothing had been
        for parameter, first in zip(trained.parameters(), begun):
            parameter.copy_(first)
            optimizer.state[parameter]["momentum_buffer"].zero_()
    losses = []
    for number in range(STEPS):
        for place, new in zip((inputs, target), batch(number, size)):
            place.copy_(rows(new, rank))
        graph.replay()
        losses.append(float(mean))
    return losses


def all_ways(rank, size):
    use_gpu(rank)
    ranks.join()
    wanted = alone(size)
    for way in (data_parallel, sharded, whole_step_in_a_graph):
        losses = way(rank, size)
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses, wanted))
        learns = losses[-1] < losses[0]
        word = "as one process" if worst < 1e-4 and learns and len(losses) == STEPS else "NOT as one process"
        print(f"WAY {way.__name__} {word}: {STEPS} steps, relative difference {worst:.1e}, "
              f"loss {losses[0]:.6f} to {losses[-1]:.6f}", flush=True)
    dist.destroy_process_group()
