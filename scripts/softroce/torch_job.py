# SPDX-License-Identifier: Apache-2.0
"""A job of torchrun: each worker says where it may run, and what the sum of all ranks' numbers is."""
import os

import torch
import torch.distributed

torch.distributed.init_process_group("gloo")
rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
number = torch.tensor([rank + 1])
torch.distributed.all_reduce(number)
# One write: the workers of a host share a pipe.
os.write(1, f"rank {rank} of {size}: CPUs {sorted(os.sched_getaffinity(0))}, sum {number.item()}\n".encode())
torch.distributed.destroy_process_group()
