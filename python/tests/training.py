# SPDX-License-Identifier: Apache-2.0
"""Ways to train, each some steps: run with gdrx and with Gloo, by run.py, which compares the lines."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 48), torch.nn.GELU(), torch.nn.Linear(48, 48),
                               torch.nn.GELU(), torch.nn.Linear(48, 8))


def steps(trained, optimizer, seed):
    """The mean over ranks of each step's loss."""
    data, losses = torch.Generator().manual_seed(seed), []
    for _ in range(5):
        inputs = torch.randn(8, 16, generator=data)
        loss = mse_loss(trained(inputs), inputs[:, :8].sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean))
    return losses


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2, foreach=False)


def fsdp(rank, mesh):
    trained = model()
    for layer in trained[::2]:
        fully_shard(layer, mesh=mesh)
    fully_shard(trained, mesh=mesh)
    return steps(trained, adam(trained.parameters()), rank)


def tensor_parallel(_, mesh):
    trained = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return steps(trained, adam(trained.parameters()), 0)


def unused_parameters(rank, _):
    trained = DistributedDataParallel(model(), find_unused_parameters=True)
    return steps(trained, ZeroRedundancyOptimizer(trained.parameters(), torch.optim.Adam, lr=1e-2), rank)


def pipeline(rank, mesh):
    size = mesh.size()
    whole = model()
    part = whole[2 * rank:] if rank == size - 1 else whole[2 * rank:2 * rank + 2]
    stage = PipelineStage(part, rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 4, loss_fn=mse_loss)
    optimizer, sums = torch.optim.SGD(part.parameters(), lr=1e-2), []
    for step in range(3):
        data, losses = torch.Generator().manual_seed(step), []
        inputs, target = torch.randn(16, 16, generator=data), torch.randn(16, 8, generator=data)
        optimizer.zero_grad()
        schedule.step(*([inputs] if rank == 0 else []), target=target if rank == size - 1 else None,
                      losses=losses)
        optimizer.step()
        total = torch.stack(losses).sum().detach() if losses else torch.zeros(())
        dist.all_reduce(total)
        sums.append(float(total))
    return sums


def saved_and_loaded(rank, mesh):
    folder = [tempfile.mkdtemp()] if rank == 0 else [None]
    dist.broadcast_object_list(folder)
    trained = fully_shard(model(), mesh=mesh)
    state = {"model": trained.state_dict()}
    checkpoint.save(state, checkpoint_id=folder[0])
    for tensor in state["model"].values():
        tensor.to_local().zero_()
    checkpoint.load(state, checkpoint_id=folder[0])
    return [float(sum(tensor.full_tensor().abs().sum() for tensor in state["model"].values()))]


def all_ways(rank, size):
    backend = os.environ["TEST_BACKEND"]
    if backend == "gdrx":  # as who wants gdrx for every mesh of CPUs
        dist.distributed_c10d.Backend.default_device_backend_map["cpu"] = "gdrx"
    dist.init_process_group(backend, init_method=f"file://{os.environ['TEST_STORE']}", rank=rank,
                            world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    for way in (fsdp, tensor_parallel, unused_parameters, pipeline, saved_and_loaded):
        print(f"LOSSES {way.__name__} {[value.hex() for value in way(rank, mesh)]}", flush=True)
    assert dist.get_backend() == backend
    dist.destroy_process_group()
