#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library by ctypes, as vLLM's PyNcclCommunicator takes NCCL: the same functions by name, a process a rank.

pynccl.py LIBRARY [--ranks N] [--cuda LIBCUDART] [--version N] [--die]
LIBRARY is libgdrx-nccl.so, or NCCL itself. Memory is of PyTorch, or of the CUDA runtime that --cuda names.
--version: what it has to say it is. --die: rank 1 is killed, and the others are told so, abort and end.
"""
import argparse
import array
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

INT, SIZE, POINTER = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
FLOAT32, SUM, SYMMETRIC, REMOTE_ERROR = 7, 0, 1, 6


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


# What vLLM looks up, all of it before it makes a communicator; and what tells of deaths.
FUNCTIONS = {
    "ncclGetErrorString": [INT],
    "ncclGetVersion": [ctypes.POINTER(INT)],
    "ncclGetUniqueId": [ctypes.POINTER(UniqueId)],
    "ncclCommInitRank": [ctypes.POINTER(POINTER), INT, UniqueId, INT],
    "ncclAllReduce": [POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER],
    "ncclReduce": [POINTER, POINTER, SIZE, INT, INT, INT, POINTER, POINTER],
    "ncclAllGather": [POINTER, POINTER, SIZE, INT, POINTER, POINTER],
    "ncclReduceScatter": [POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER],
    "ncclSend": [POINTER, SIZE, INT, INT, POINTER, POINTER],
    "ncclRecv": [POINTER, SIZE, INT, INT, POINTER, POINTER],
    "ncclBroadcast": [POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER],
    "ncclCommDestroy": [POINTER],
    "ncclCommAbort": [POINTER],
    "ncclCommGetAsyncError": [POINTER, ctypes.POINTER(INT)],
    "ncclGroupStart": [],
    "ncclGroupEnd": [],
    "ncclCommWindowRegister": [POINTER, POINTER, SIZE, ctypes.POINTER(POINTER), INT],
    "ncclCommWindowDeregister": [POINTER, POINTER],
}


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        for name, arguments in FUNCTIONS.items():
            function = getattr(self.lib, name)
            function.argtypes = arguments
            function.restype = ctypes.c_char_p if name == "ncclGetErrorString" else INT

    def __getattr__(self, name):
        function = getattr(self.lib, name)

        def call(*arguments):
            result = function(*arguments)
            if result != 0:
                raise RuntimeError(f"{name}: {self.lib.ncclGetErrorString(result).decode()}")
        return call


class Torch:
    """Tensors of PyTorch on the first GPU, in a stream of its own."""

    def __init__(self, _):
        import torch
        self.torch = torch
        torch.cuda.set_device(0)
        self.held = []
        self.side = torch.cuda.Stream()
        torch.cuda.set_stream(self.side)
        self.stream = self.side.cuda_stream

    def make(self, values):
        self.held.append(self.torch.tensor(values, dtype=self.torch.float32, device="cuda"))
        return self.held[-1].data_ptr()

    def read(self, pointer, count):
        tensor = next(t for t in self.held if t.data_ptr() == pointer)
        return tensor[:count].tolist()

    def replay(self, body, times):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, stream=self.side, capture_error_mode="thread_local"):
            body(self.torch.cuda.current_stream().cuda_stream)
        for _ in range(times):
            graph.replay()
        self.torch.cuda.synchronize()


class Runtime:
    """Memory of a CUDA runtime, by ctypes."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self.check(self.lib.cudaSetDevice(0))
        stream = POINTER()
        self.check(self.lib.cudaStreamCreateWithFlags(ctypes.byref(stream), 1))
        self.stream = stream.value

    def check(self, status):
        if status != 0:
            raise RuntimeError(f"CUDA: status {status}")

    def copy(self, to, source, count, kind):
        stream = POINTER(self.stream)
        self.check(self.lib.cudaMemcpyAsync(POINTER(to), POINTER(source), SIZE(count * 4), kind, stream))
        self.check(self.lib.cudaStreamSynchronize(stream))

    def make(self, values):
        memory, host = POINTER(), array.array("f", values)
        self.check(self.lib.cudaMalloc(ctypes.byref(memory), SIZE(len(host) * 4)))
        self.copy(memory.value, host.buffer_info()[0], len(host), 1)
        return memory.value

    def read(self, pointer, count):
        host = array.array("f", [0] * count)
        self.copy(host.buffer_info()[0], pointer, count, 2)
        return list(host)

    def replay(self, body, times):  # a graph's place is in PyTorch's part
        for _ in range(times):
            body(self.stream)


def expect(name, got, want):
    if list(got) != list(want):
        raise AssertionError(f"{name}: {list(got)[:8]} is not {list(want)[:8]}")


def collectives(nccl, comm, memory, rank, ranks):
    n, stream = 1001, memory.stream
    own = [float(rank + 1 + i % 7) for i in range(n)]
    total = [float(sum(r + 1 + i % 7 for r in range(ranks))) for i in range(n)]
    given, taken = memory.make(own), memory.make([0.0] * n * ranks)
    nccl.ncclAllReduce(given, taken, n, FLOAT32, SUM, comm, stream)
    expect("all-reduce", memory.read(taken, n), total)
    nccl.ncclReduce(given, taken, n, FLOAT32, SUM, ranks - 1, comm, stream)
    if rank == ranks - 1:
        expect("reduce", memory.read(taken, n), total)
    nccl.ncclAllGather(given, taken, n, FLOAT32, comm, stream)
    everyone = [float(r + 1 + i % 7) for r in range(ranks) for i in range(n)]
    expect("all-gather", memory.read(taken, n * ranks), everyone)
    wide = memory.make(everyone)
    nccl.ncclReduceScatter(wide, given, n, FLOAT32, SUM, comm, stream)
    expect("reduce-scatter", memory.read(given, n), [ranks * value for value in own])
    nccl.ncclBroadcast(wide, given, n, FLOAT32, 0, comm, stream)
    expect("broadcast", memory.read(given, n), everyone[:n])


def messages(nccl, comm, memory, rank, ranks):
    n, stream = 5000, memory.stream
    after, before = (rank + 1) % ranks, (rank + ranks - 1) % ranks
    given, taken = memory.make([float(rank)] * n), memory.make([-1.0] * n)
    nccl.ncclGroupStart()
    nccl.ncclSend(given, n, FLOAT32, after, comm, stream)
    nccl.ncclRecv(taken, n, FLOAT32, before, comm, stream)
    nccl.ncclGroupEnd()
    expect("send and receive", memory.read(taken, n), [float(before)] * n)


def windows(nccl, comm, memory, ranks):
    n = 1 << 20
    buffer, window = memory.make([1.0] * n), POINTER()
    nccl.ncclCommWindowRegister(comm, buffer, n * 4, ctypes.byref(window), SYMMETRIC)
    nccl.ncclAllReduce(buffer, buffer, n, FLOAT32, SUM, comm, memory.stream)
    expect("all-reduce in a window", memory.read(buffer, 100), [float(ranks)] * 100)
    nccl.ncclCommWindowDeregister(comm, window)


def graphs(nccl, comm, memory, ranks):
    buffer = memory.make([1.0] * 300)
    memory.replay(lambda stream: nccl.ncclAllReduce(buffer, buffer, 300, FLOAT32, SUM, comm, stream), 3)
    expect("all-reduce in a graph", memory.read(buffer, 300), [float(ranks ** 3)] * 300)


def outlive(nccl, comm, memory, options):
    """What a framework's watcher does: it asks, and aborts what has failed. A call waits for the dead meanwhile."""
    rank = options.rank
    pathlib.Path(f"{options.id}.called.{rank}").touch()
    if rank == 1:  # the others' first call has returned
        for other in range(options.ranks):
            wait_for(f"{options.id}.called.{other}", f"rank {other}'s first call does not return")
        os.kill(os.getpid(), signal.SIGKILL)
    buffer, error = memory.make([1.0] * 10), INT(0)
    try:
        nccl.ncclAllReduce(buffer, buffer, 10, FLOAT32, SUM, comm, memory.stream)
    except RuntimeError:
        pass  # it was told before
    end = time.monotonic() + 40
    while error.value == 0:
        nccl.ncclCommGetAsyncError(comm, ctypes.byref(error))
        if time.monotonic() > end:
            raise RuntimeError("nobody was told of the death")
        time.sleep(0.01)
    expect("asynchronous error", [error.value], [REMOTE_ERROR])
    nccl.ncclCommAbort(comm)
    print(f"rank {rank}: outlived rank 1", flush=True)


def wait_for(path, failure):
    end = time.monotonic() + 30
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise RuntimeError(failure)
        time.sleep(0.01)


def unique_id(nccl, path, rank):
    made = UniqueId()
    if rank == 0:  # before anything of CUDA
        nccl.ncclGetUniqueId(ctypes.byref(made))
        with open(path + ".new", "wb") as file:
            file.write(bytes(made))
        os.rename(path + ".new", path)
    wait_for(path, "rank 0 made no id")
    with open(path, "rb") as file:
        return UniqueId.from_buffer_copy(file.read())


def run_rank(options):
    # The emulated CUDA is what the library finds, too: it comes first.
    early = Runtime(options.cuda) if options.cuda else None
    nccl = Library(options.library)
    version = INT()
    nccl.ncclGetVersion(ctypes.byref(version))
    if options.version:
        expect("version", [version.value], [options.version])
    made = unique_id(nccl, options.id, options.rank)
    memory, comm = early or Torch(None), POINTER()
    nccl.ncclCommInitRank(ctypes.byref(comm), options.ranks, made, options.rank)
    nccl.ncclAllReduce(memory.make([0.0]), memory.make([0.0]), 1, FLOAT32, SUM, comm, memory.stream)
    if options.die:
        return outlive(nccl, comm, memory, options)
    collectives(nccl, comm, memory, options.rank, options.ranks)
    messages(nccl, comm, memory, options.rank, options.ranks)
    graphs(nccl, comm, memory, options.ranks)
    windows(nccl, comm, memory, options.ranks)
    nccl.ncclCommDestroy(comm)
    print(f"rank {options.rank}: all right, version {version.value}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cuda")
    parser.add_argument("--version", type=int)
    parser.add_argument("--die", action="store_true")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--id")
    options = parser.parse_args()
    if options.rank is not None:
        return run_rank(options)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, *sys.argv[1:], "--id", os.path.join(folder, "id")]
        ranks = [subprocess.Popen([*command, "--rank", str(r)], stdin=subprocess.DEVNULL)
                 for r in range(options.ranks)]
        results = [rank.wait(timeout=120) for rank in ranks]
        if options.die and results[1] == -signal.SIGKILL:
            results[1] = 0
        return max(abs(result) for result in results)


if __name__ == "__main__":
    sys.exit(main())
