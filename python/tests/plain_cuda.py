# SPDX-License-Identifier: Apache-2.0
"""CUDA memory and streams as Python's libraries show them, by ctypes alone: libcuda is the emulated one, or a GPU's."""
import ctypes
import time

import numpy as np

cuda = ctypes.CDLL("libcuda.so.1")


def check(result, call):
    assert result == 0, f"{call}: {result}"


def open_gpu():
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")


class Array:
    """A copy of a numpy array in the GPU's memory."""

    def __init__(self, host):
        self.host, self.memory = host, ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(self.memory), ctypes.c_size_t(host.nbytes)), "cuMemAlloc")
        check(cuda.cuMemcpyHtoD_v2(self.memory, ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(host.nbytes)),
              "cuMemcpyHtoD")
        check(cuda.cuStreamSynchronize(None), "cuStreamSynchronize")  # the copy returns before its end, for other streams

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.host.shape, "typestr": self.host.dtype.str, "data": (self.memory.value, False),
                "version": 3}

    def get(self):
        out = np.empty_like(self.host)
        check(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(out.ctypes.data), self.memory, ctypes.c_size_t(out.nbytes)),
              "cuMemcpyDtoH")
        return out


class Stream:
    """Of the protocol that CUDA's Python libraries share."""

    def __init__(self):
        self.handle = ctypes.c_void_p()
        check(cuda.cuStreamCreate(ctypes.byref(self.handle), 1), "cuStreamCreate")

    def __cuda_stream__(self):
        return 0, self.handle.value

    def wait(self):
        check(cuda.cuStreamSynchronize(self.handle), "cuStreamSynchronize")


class TorchStream:
    """The same as torch shows it."""

    def __init__(self, stream):
        self.cuda_stream = stream.handle.value


def run(comm):
    """In a stream by each of its names, and without one; recv apart from send, too."""
    data, out, stream = Array(np.full(1000, comm.rank + 1, np.float32)), Array(np.zeros(1000, np.float32)), Stream()
    wanted = comm.size * (comm.size + 1) / 2
    for name in (stream, TorchStream(stream), stream.handle.value, None):
        comm.all_reduce(data, out, stream=name)
        stream.wait()
        assert (out.get() == wanted).all(), (name, out.get())
    comm.all_reduce(data, out, stream=stream if comm.rank else 0)  # CUDA's default stream is one for all
    check(cuda.cuStreamSynchronize(None), "cuStreamSynchronize")
    stream.wait()
    assert (out.get() == wanted).all()
    comm.broadcast(out, root=1, stream=stream)
    request = comm.all_reduce(data, wait=False)
    request.wait()
    assert (data.get() == wanted).all() and (out.get() == wanted).all()
    assert comm.stats()["memory"]["gpu_bytes"] > 0


def late(comm):
    """Rank 1 comes a second after the others, whose kernels wait for it."""
    data, out, stream = Array(np.ones(1000, np.float32)), Array(np.zeros(1000, np.float32)), Stream()
    comm.barrier()
    if comm.rank == 1:
        time.sleep(1)
    comm.all_reduce(data, out, stream=stream)
    if comm.rank != 1:
        time.sleep(0.4)
        found = comm.late()
        print("LATE", found.ranks, found.running, found.text, flush=True)
    stream.wait()
    assert (out.get() == comm.size).all()
    assert comm.late().ranks == (), comm.late()
