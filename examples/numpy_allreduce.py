# SPDX-License-Identifier: Apache-2.0
"""Sums a numpy array over all ranks, without torch: mpirun -np 2 python examples/numpy_allreduce.py

srun and torchrun start it as well."""
import gdrx
import numpy as np

with gdrx.Communicator.from_environment() as comm:
    data = np.full(4, comm.rank + 1, np.float32)
    comm.all_reduce(data)
    print(f"rank {comm.rank} of {comm.size}: sum {data}", flush=True)

    parts = np.empty(comm.size, np.int64)
    comm.all_gather(np.array([comm.rank * comm.rank]), parts)
    if comm.rank == 0:
        print(f"squares of the ranks: {parts}", flush=True)
