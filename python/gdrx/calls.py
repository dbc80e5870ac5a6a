# SPDX-License-Identifier: Apache-2.0
"""The calls of a communicator that move data."""
from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from operator import index
from typing import Any

from gdrx import capi, requests
from gdrx.buffers import Buffer, BufferLike, look
from gdrx.errors import ArgumentError
from gdrx.requests import Request

OPERATORS = ("sum", "prod", "min", "max", "avg", "land", "lor", "lxor", "band", "bor", "bxor", "minloc",
             "maxloc")


def operator(name: str) -> int:
    if name not in OPERATORS:
        raise ArgumentError(f"op {name!r} is none of {', '.join(OPERATORS)}")
    return OPERATORS.index(name)


def stream_handle(stream: Any) -> int | None:
    """A cudaStream_t: an int, or what has __cuda_stream__, cuda_stream (torch) or ptr (CuPy). CUDA's
    default stream, 0 there, is 1 for gdrx (gdrxStreamDefault)."""
    if stream is None:
        return None
    handle = stream
    if hasattr(stream, "__cuda_stream__"):
        told = stream.__cuda_stream__
        handle = (told() if callable(told) else told)[1]
    else:
        for name in ("cuda_stream", "ptr"):
            if hasattr(stream, name):
                handle = getattr(stream, name)
                break
    if not isinstance(handle, int):
        raise ArgumentError(f"stream is a {type(stream).__name__}: give an int, or what has __cuda_stream__ "
                            "or cuda_stream")
    return handle or 1


def _pair(send: BufferLike, recv: BufferLike, dtype: Any) -> tuple[Buffer, Buffer]:
    first, second = look(send, "send", False, dtype), look(recv, "recv", True, dtype)
    if first.type != second.type:
        raise ArgumentError(f"send is of {first.type_name}, recv of {second.type_name}")
    return first, second


def _equal(role: str, buffer: Buffer, count: int) -> None:
    if buffer.count != count:
        raise ArgumentError(f"{role} has {buffer.count} elements, not {count}")


def _block(role: str, whole: Buffer, size: int) -> int:
    if whole.count % size:
        raise ArgumentError(f"{role} has {whole.count} elements, which are no equal blocks for {size} ranks")
    return whole.count // size


class Parts:
    """A count for each rank, and where each part begins; the buffer holds them all."""

    def __init__(self, role: str, buffer: Buffer, counts: Sequence[int], displs: Sequence[int] | None,
                 size: int):
        counts = [index(count) for count in counts]
        starts = ([index(start) for start in displs] if displs is not None
                  else [0, *itertools.accumulate(counts)][:len(counts)])
        if len(counts) != size or len(starts) != size:
            raise ArgumentError(f"{role}_counts and {role}_displs have one entry for each of {size} ranks")
        for rank, (count, start) in enumerate(zip(counts, starts)):
            if count < 0 or start < 0 or (count and start + count > buffer.count):
                raise ArgumentError(f"{role} has {buffer.count} elements, and the part of rank {rank} is {count} "
                                    f"from {start} on")
        self.counts = (ctypes.c_size_t * size)(*counts)
        self.displs = (ctypes.c_size_t * size)(*starts)


class Calls:
    """Every call takes the same keywords:

    dtype: takes the bytes of the buffers for elements of this type: a name of gdrx, or a type of numpy,
        ml_dtypes or torch. None: what the buffers say.
    stream: a CUDA stream in which the call takes its place; it returns at once. The buffers are the
        caller's to keep until the stream has come past it.
    wait: False returns a Request at once. It keeps the buffers until it has ended.

    Buffers are contiguous memory of any shape: elements are counted. All ranks give buffers of the same
    type. They are not touched until the call is done. A call returns None, or a Request.

    Raises ArgumentError before anything is posted, Error if the call failed.
    """

    rank: int
    size: int

    def _post(self, name: str, arguments: tuple[Any, ...], buffers: tuple[Any, ...], stream: Any,
              wait: bool) -> Request | None:
        raise NotImplementedError

    def all_reduce(self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum", *,
                   dtype: Any = None, stream: Any = None, wait: bool = True) -> Request | None:
        """recv[i] = op over all ranks of send[i]. Without recv, send is overwritten."""
        source, target = self._in_place(send, recv, dtype)
        return self._post("all_reduce", (source.address, target.address, source.count, source.type, operator(op)),
                          (source, target), stream, wait)

    def reduce(self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum", root: int = 0, *,
               dtype: Any = None, stream: Any = None, wait: bool = True) -> Request | None:
        """all_reduce whose result root alone gets. recv is looked at on root; without it, root's send is
        overwritten."""
        if self._root(root):
            source, target = self._in_place(send, recv, dtype)
        else:
            source = target = look(send, "send", False, dtype)
        return self._post("reduce", (source.address, target.address if self.rank == root else None,
                                     source.count, source.type, operator(op), root),
                          (source, target), stream, wait)

    def broadcast(self, buffer: BufferLike, root: int = 0, *, dtype: Any = None, stream: Any = None,
                  wait: bool = True) -> Request | None:
        """root's buffer goes to every other rank's, of as many elements."""
        found = look(buffer, "buffer", not self._root(root), dtype)
        return self._post("broadcast", (found.address, found.address, found.count, found.type, root), (found,),
                          stream, wait)

    def all_gather(self, send: BufferLike, recv: BufferLike, *, dtype: Any = None, stream: Any = None,
                   wait: bool = True) -> Request | None:
        """recv: size blocks of send's length; block r is rank r's send. In place: send is this rank's
        block of recv."""
        source, target = _pair(send, recv, dtype)
        _equal("recv", target, source.count * self.size)
        return self._post("all_gather", (source.address, target.address, source.count, source.type),
                          (source, target), stream, wait)

    def reduce_scatter(self, send: BufferLike, recv: BufferLike, op: str = "sum", *, dtype: Any = None,
                       stream: Any = None, wait: bool = True) -> Request | None:
        """send: size blocks of recv's length. recv is op over all ranks of this rank's block."""
        source, target = _pair(send, recv, dtype)
        _equal("send", source, target.count * self.size)
        return self._post("reduce_scatter", (source.address, target.address, target.count, source.type, operator(op)),
                          (source, target), stream, wait)

    def all_to_all(self, send: BufferLike, recv: BufferLike | None = None, *, dtype: Any = None,
                   stream: Any = None, wait: bool = True) -> Request | None:
        """Both: size blocks. Block r of send goes to rank r, block r of recv comes from it. Without recv,
        send is overwritten."""
        source, target = self._in_place(send, recv, dtype)
        count = _block("send", source, self.size)
        return self._post("all_to_all", (source.address, target.address, count, source.type), (source, target),
                          stream, wait)

    def gather(self, send: BufferLike, recv: BufferLike | None = None, root: int = 0, *, dtype: Any = None,
               stream: Any = None, wait: bool = True) -> Request | None:
        """recv, looked at on root: size blocks of send's length; block r is rank r's send."""
        source = target = look(send, "send", False, dtype)
        if self._root(root):
            source, target = _pair(send, self._given("recv", recv), dtype)
            _equal("recv", target, source.count * self.size)
        return self._post("gather", (source.address, target.address, source.count, source.type, root),
                          (source, target), stream, wait)

    def scatter(self, send: BufferLike | None, recv: BufferLike, root: int = 0, *, dtype: Any = None,
                stream: Any = None, wait: bool = True) -> Request | None:
        """send, looked at on root: size blocks of recv's length; block r goes to rank r."""
        source = target = look(recv, "recv", True, dtype)
        if self._root(root):
            source, target = _pair(self._given("send", send), recv, dtype)
            _equal("send", source, target.count * self.size)
        return self._post("scatter", (source.address, target.address, target.count, target.type, root),
                          (source, target), stream, wait)

    def scan(self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum", *, dtype: Any = None,
             stream: Any = None, wait: bool = True) -> Request | None:
        """recv[i] = op over ranks 0 to this one of send[i]. Without recv, send is overwritten."""
        source, target = self._in_place(send, recv, dtype)
        return self._post("scan", (source.address, target.address, source.count, source.type, operator(op)),
                          (source, target), stream, wait)

    def exscan(self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum", *, dtype: Any = None,
               stream: Any = None, wait: bool = True) -> Request | None:
        """scan without this rank's own; rank 0's recv stays as it is."""
        source, target = self._in_place(send, recv, dtype)
        return self._post("exscan", (source.address, target.address, source.count, source.type, operator(op)),
                          (source, target), stream, wait)

    def barrier(self, *, stream: Any = None, wait: bool = True) -> Request | None:
        """Done when every rank has come as far."""
        return self._post("barrier", (), (), stream, wait)

    def send(self, buffer: BufferLike, peer: int, *, dtype: Any = None, stream: Any = None,
             wait: bool = True) -> Request | None:
        """To rank peer, whose recv has as many elements. Messages of a pair are matched in their order."""
        found = look(buffer, "buffer", False, dtype)
        return self._post("send", (found.address, found.count, found.type, self._peer(peer)), (found,), stream, wait)

    def recv(self, buffer: BufferLike, peer: int, *, dtype: Any = None, stream: Any = None,
             wait: bool = True) -> Request | None:
        """From rank peer, whose send has as many elements."""
        found = look(buffer, "buffer", True, dtype)
        return self._post("recv", (found.address, found.count, found.type, self._peer(peer)), (found,), stream, wait)

    def group(self, timeout: float = 0.0) -> requests.Group:
        """gdrx.group(): calls of this thread that start together."""
        return requests.group(timeout)

    def _in_place(self, send: BufferLike, recv: BufferLike | None, dtype: Any) -> tuple[Buffer, Buffer]:
        if recv is None:
            both = look(send, "send", True, dtype)
            return both, both
        source, target = _pair(send, recv, dtype)
        _equal("recv", target, source.count)
        return source, target

    def _root(self, root: int) -> bool:
        if not 0 <= index(root) < self.size:
            raise ArgumentError(f"root {root} is no rank of 0 to {self.size - 1}")
        return root == self.rank

    def _peer(self, peer: int) -> int:
        if not 0 <= index(peer) < self.size:
            raise ArgumentError(f"peer {peer} is no rank of 0 to {self.size - 1}")
        return peer

    def _given(self, role: str, buffer: BufferLike | None) -> BufferLike:
        if buffer is None:
            raise ArgumentError(f"root's {role} is missing")
        return buffer
