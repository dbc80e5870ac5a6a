# SPDX-License-Identifier: Apache-2.0
"""Python's binding opens MPI with names of its own."""
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
mine, total = array("d", [world.rank + 1.0] * 1000), array("d", [0.0] * 1000)
for _ in range(10):
    world.Allreduce(mine, total, MPI.SUM)
assert total[999] == world.size * (world.size + 1) / 2
assert world.allgather(world.rank) == list(range(world.size))
if world.rank == 0:
    print("right")
