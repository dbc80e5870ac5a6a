#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a linear model on 48 micro-batches a step, and prints a digest of its bits: the same for every number of ranks.

  mpirun -np 1 python3 examples/leaves.py
  mpirun -np 3 python3 examples/leaves.py

Needs gdrx and numpy; under torchrun it runs as well.
"""
import hashlib

import numpy as np

import gdrx

LEAVES, STEPS, SAMPLES, WEIGHTS, RATE = 48, 20, 16, 1000, np.float32(0.001)


def gradient(weights, step, leaf):
    """Of one micro-batch, whose data depend on its number alone."""
    random = np.random.default_rng((step, leaf))
    inputs = random.standard_normal((SAMPLES, WEIGHTS), np.float32)
    targets = inputs.sum(axis=1) + random.standard_normal(SAMPLES, np.float32)
    errors = (inputs * weights).sum(axis=1) - targets
    return (inputs * errors[:, None]).sum(axis=0) / np.float32(SAMPLES)


def main():
    with gdrx.Communicator.from_environment() as comm:
        counts = [LEAVES // comm.size + (rank < LEAVES % comm.size) for rank in range(comm.size)]
        first = sum(counts[:comm.rank])
        weights, mean = np.zeros(WEIGHTS, np.float32), np.empty(WEIGHTS, np.float32)
        for step in range(STEPS):
            gradients = np.empty((counts[comm.rank], WEIGHTS), np.float32)
            for i in range(counts[comm.rank]):
                gradients[i] = gradient(weights, step, first + i)
            comm.all_reduce_leaves(gradients, mean, counts, "avg")
            weights -= RATE * mean
        if comm.rank == 0:
            print(f"{comm.size} ranks, leaves {counts}: {hashlib.sha256(weights.tobytes()).hexdigest()[:16]}")


if __name__ == "__main__":
    main()
