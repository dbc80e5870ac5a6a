# SPDX-License-Identifier: Apache-2.0
"""What the way from torch.distributed to gdrx costs the host: "COST name microseconds" for each."""
import ctypes
import statistics
import time

import torch
import torch.distributed as dist

import gdrx
import ranks
from gdrx import buffers, calls, library
from cuda_all import device, use_gpu

CALLS, ROUNDS = 200, 15


def of_host(call):
    """Microseconds of this thread for one call; the GPU is never so far behind that the stream is full."""
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        dist.barrier(device_ids=[torch.cuda.current_device()])
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - begun) / CALLS * 1e6)
    return statistics.median(times)


def bare(rank, size):
    """(gdrxAllReduce without PyTorch between, a call of C that does nothing): what ctypes costs is in both."""
    box = [gdrx.unique_id() if rank == 0 else None]
    dist.broadcast_object_list(box, device=torch.device("cpu"))
    comm = gdrx.Communicator(box[0], rank, size, gpu=torch.cuda.current_device())
    c = ctypes.CDLL(str(library.path()))
    tensor = torch.ones(2, device="cuda")
    pointer, stream = ctypes.c_void_p(tensor.data_ptr()), torch.cuda.Stream()
    handle, where, count = comm._handle, ctypes.c_void_p(stream.cuda_stream), ctypes.c_size_t(2)
    f32, plus = ctypes.c_int(buffers.TYPES["float32"][0]), ctypes.c_int(calls.OPERATORS.index("sum"))

    def call():
        c.gdrxAllReduce(pointer, pointer, count, f32, plus, handle, where, None)

    call()
    torch.cuda.synchronize()
    taken = of_host(call), of_host(c.gdrxGetVersion)
    torch.cuda.synchronize()
    comm.finalize()
    return taken


def run(rank, size):
    use_gpu(rank)
    torch.ones(1).cuda()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    ranks.join(device_id=device(rank))
    made = time.perf_counter() - begun
    tensor = torch.ones(2)
    backend = dist.group.WORLD._get_backend(device(rank))
    dist.all_reduce(tensor)
    options = dist.AllreduceOptions()
    options.asyncOp = False
    costs = {"device_id": made * 1e6, "all_reduce": of_host(lambda: dist.all_reduce(tensor)),
             "backend": of_host(lambda: backend.allreduce([tensor], options))}
    costs["gdrxAllReduce"], costs["nothing"] = bare(rank, size)
    costs["shim"] = costs["backend"] - (costs["gdrxAllReduce"] - costs["nothing"])
    for name, cost in costs.items():
        print(f"COST {name} {cost:.2f}", flush=True)
    dist.destroy_process_group()
