# SPDX-License-Identifier: Apache-2.0
"""Ways to train on GPUs, each 200 steps, beside the same steps in one process."""
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.nn.functional import all_to_all_single
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

import gdrx
import ranks
from cuda_all import device, use_gpu

STEPS, ROWS, WIDTH = 200, 32, 256


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
    return torch.optim.SGD(trained.parameters(), lr=0.05, momentum=0.9, foreach=False)


def step_of(trained, optimizer, inputs, target):
    loss = mse_loss(trained(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def alone(size, trained=None):
    trained = trained or model()
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


def compiled(rank, size):
    """torch.compile over DistributedDataParallel: the graph is cut where buckets are."""
    trained = DistributedDataParallel(model(), device_ids=[device(rank).index], bucket_cap_mb=1)
    return together(torch.compile(trained), rank, size)


def tensor_parallel(rank, size):
    """Every rank has all rows, and a part of each layer."""
    mesh = init_device_mesh("cuda", (size,))
    trained = parallelize_module(model(), mesh, {"2": ColwiseParallel(), "4": RowwiseParallel()})
    optimizer = optimizer_of(trained)
    return [float(step_of(trained, optimizer, *batch(step, size))) for step in range(STEPS)]


def pipeline(rank, size):
    """Every rank has some layers, and four parts of the rows are on their way."""
    whole = model()
    cuts = [0] + [2 * (1 + 4 * r // size) for r in range(1, size)] + [len(whole)]
    part = whole[cuts[rank]:cuts[rank + 1]]
    schedule = Schedule1F1B(PipelineStage(part, rank, size, device(rank)), 4, loss_fn=mse_loss)
    optimizer, means = optimizer_of(part), []
    for step in range(STEPS):
        inputs, target = batch(step, size)
        losses = []
        optimizer.zero_grad()
        schedule.step(*([inputs] if rank == 0 else []), **({"target": target, "losses": losses} if rank == size - 1 else {}))
        optimizer.step()
        mean = torch.stack(losses).mean().detach() if losses else torch.zeros(())
        dist.broadcast(mean, size - 1)
        means.append(float(mean))
    return means


class Experts(torch.nn.Module):
    """A row goes to one of `size` experts, by its largest gate, and comes back times that gate. With a group each
    rank has one of them, and rows travel to it and back."""

    def __init__(self, size, rank=None):
        super().__init__()
        torch.manual_seed(1)
        self.gate = torch.nn.Linear(WIDTH, size)
        experts = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(size)]
        self.experts = torch.nn.ModuleList(experts if rank is None else [experts[rank]])
        self.shared = rank is not None

    def forward(self, rows):
        weight, chosen = self.gate(rows).softmax(dim=1).max(dim=1)
        order = chosen.argsort(stable=True)
        counts = chosen.bincount(minlength=self.gate.out_features)
        come = self.travel(rows[order], counts) if self.shared else self.stay(rows[order], counts)
        return rows + weight[:, None] * torch.zeros_like(come).index_copy(0, order, come)

    def stay(self, rows, counts):
        return torch.cat([expert(part) for expert, part in zip(self.experts, rows.split(counts.tolist()))])

    def travel(self, rows, counts):
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        sent, got = counts.tolist(), theirs.tolist()
        there = all_to_all_single(rows.new_empty(sum(got), WIDTH), rows, got, sent)
        back = self.experts[0](there)
        return all_to_all_single(rows.new_empty(sum(sent), WIDTH), back, sent, got)


def with_experts(size, rank=None):
    whole = model()
    return torch.nn.Sequential(*whole[:4], Experts(size, rank), *whole[4:])


def expert_parallel(rank, size):
    """Rows are of a rank, experts too; all else is everybody's."""
    trained = with_experts(size, rank)
    optimizer, losses = optimizer_of(trained), []
    own = {id(parameter) for parameter in trained[4].experts.parameters()}
    for step in range(STEPS):
        inputs, target = batch(step, size)
        loss = mse_loss(trained(rows(inputs, rank)), rows(target, rank))
        optimizer.zero_grad()
        (loss / size).backward()
        for parameter in trained.parameters():
            if id(parameter) not in own:  # an expert has the sum over all rows already
                dist.all_reduce(parameter.grad)
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        losses.append(float(mean))
    return losses


def bits_of_bucket_sizes(rank, size):
    """In reproducible mode the size of buckets changes no bit of a loss."""
    gdrx.set_reproducible()
    runs = [[loss.hex() for loss in together(DistributedDataParallel(
        model(), device_ids=[device(rank).index], bucket_cap_mb=cap), rank, size)] for cap in (0.05, 1, 25)]
    assert all(run == runs[0] for run in runs), "bits differ"
    return [float.fromhex(loss) for loss in runs[0]]


WAYS = (data_parallel, sharded, whole_step_in_a_graph, tensor_parallel, pipeline, expert_parallel, compiled, bits_of_bucket_sizes)


def all_ways(rank, size):
    use_gpu(rank)
    ranks.join()
    plain, routed = alone(size), alone(size, with_experts(size))
    for way in WAYS:
        begun = time.monotonic()
        losses = way(rank, size)
        seconds = time.monotonic() - begun
        wanted = routed if way is expert_parallel else plain
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses, wanted))
        learns = losses[-1] < losses[0]
        word = "as one process" if worst < 1e-4 and learns and len(losses) == STEPS else "NOT as one process"
        print(f"WAY {way.__name__} {word}: {STEPS} steps in {seconds:.0f} s, relative difference {worst:.1e}, "
              f"loss {losses[0]:.6f} to {losses[-1]:.6f}", flush=True)
    dist.destroy_process_group()
