#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small DistributedDataParallel training run, to compare networks under NCCL.

    NCCL_NET_PLUGIN=gdrx LD_LIBRARY_PATH=build/release/lib torchrun --nproc-per-node 2 \
        examples/pytorch_ddp.py --apart --out gdrx.txt
    NCCL_NET=Socket torchrun --nproc-per-node 2 examples/pytorch_ddp.py --apart --out socket.txt
    cmp gdrx.txt socket.txt

Writes each step's loss with all of its bits. Everything that could differ between two runs is
pinned: seeds, deterministic kernels, NCCL's algorithm, protocol and number of channels.
"""
import argparse
import os

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--apart", action="store_true", help="every process is a host of its own to NCCL")
parser.add_argument("--out", default="", help="file for the losses of rank 0")
options = parser.parse_args()

rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
if options.apart:
    os.environ["NCCL_HOSTID"] = f"host-{rank}"
    os.environ["NCCL_P2P_DISABLE"] = "1"
    os.environ["NCCL_SHM_DISABLE"] = "1"
for name, value in {
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "Simple",
    "NCCL_MIN_NCHANNELS": "2",
    "NCCL_MAX_NCHANNELS": "2",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}.items():
    os.environ.setdefault(name, value)

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

device = local_rank % torch.cuda.device_count()  # ranks may share GPUs (under CUDA's MPS, or they take turns)
torch.cuda.set_device(device)
torch.use_deterministic_algorithms(True)
torch.manual_seed(1)
dist.init_process_group("nccl")

width = options.width
layers = []
for _ in range(4):
    layers += [torch.nn.Linear(width, width), torch.nn.GELU()]
model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1)).cuda()
model = DistributedDataParallel(model, device_ids=[device])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

generator = torch.Generator().manual_seed(100 + rank)  # each rank has data of its own
lines = []
for step in range(options.steps):
    inputs = torch.randn(64, width, generator=generator).cuda()
    target = inputs.sum(dim=1, keepdim=True).sin()
    loss = torch.nn.functional.mse_loss(model(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    lines.append(f"{step} {float(total).hex()} {float(total) / dist.get_world_size():.6f}")

if rank == 0:
    print("\n".join(lines[:: max(1, options.steps // 10)]))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
dist.destroy_process_group()
