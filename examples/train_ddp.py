#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small model with DistributedDataParallel on CPUs or GPUs, over gdrx, Gloo or NCCL.

    torchrun --nproc-per-node 2 examples/train_ddp.py --backend gdrx
    mpirun -np 2 python3 examples/train_ddp.py --backend gdrx
    torchrun --nproc-per-node 2 examples/train_ddp.py --backend gdrx --device cuda

The losses of all are alike. After `pip install ./python`, nothing but the name changes.
"""
import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--backend", default="gdrx", help="gdrx, gloo or any other of torch.distributed")
parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--width", type=int, default=128)
options = parser.parse_args()

dist.init_process_group(options.backend)
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cpu")
if options.device == "cuda":  # ranks may share a GPU
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
torch.manual_seed(1)  # the same weights on every rank
model = DistributedDataParallel(torch.nn.Sequential(
    torch.nn.Linear(16, options.width), torch.nn.BatchNorm1d(options.width), torch.nn.Tanh(),
    torch.nn.Linear(options.width, options.width), torch.nn.Tanh(), torch.nn.Linear(options.width, 1)).to(device))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.Generator().manual_seed(100 + rank)  # each rank has data of its own

for step in range(options.steps):
    inputs = torch.randn(64, 16, generator=data).to(device)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True).sin())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    mean /= size
    if rank == 0:
        print(f"step {step:4d} loss {float(mean).hex()} = {float(mean):.6f}")
dist.destroy_process_group()
