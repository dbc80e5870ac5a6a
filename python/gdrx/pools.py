# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory pools on a group: memory that all its ranks map, so that calls need not copy it."""
import functools

from gdrx import shim


@functools.cache
def allocator():
    """For torch.cuda.MemPool. Ranks that allocate alike from such pools may have any number of segments."""
    from torch.cuda.memory import CUDAPluggableAllocator

    made = CUDAPluggableAllocator(shim.load().__file__, "gdrx_pool_alloc", "gdrx_pool_free")
    return made.allocator()


def segments_of(pool) -> list:
    """[(address, bytes)] in the order in which they were allocated, which ranks have in common and addresses not."""
    found = [(part["address"], part["total_size"]) for part in pool.snapshot()]
    order = [shim.load().allocated_as(address) for address, _ in found]
    if -1 not in order:
        return [part for _, part in sorted(zip(order, found))]
    sizes = [size for _, size in found]
    if len(set(sizes)) < len(sizes):
        raise ValueError("gdrx: register_mem_pool: the pool has several segments of one size, and nothing tells which of them "
                         "belong together on the ranks: make it as torch.cuda.MemPool(backend.mem_allocator)")
    return sorted(found, key=lambda part: part[1])
