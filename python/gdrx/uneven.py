# SPDX-License-Identifier: Apache-2.0
"""The calls with a count for each rank."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from operator import index
from typing import Any

from gdrx.buffers import BufferLike, look
from gdrx.calls import Calls, Parts, _equal, _pair, operator
from gdrx.errors import ArgumentError
from gdrx.requests import Request


class UnevenCalls(Calls):
    """counts[r]: elements of the part that goes to rank r or comes from it, 0 too. displs[r]: where it
    begins in the buffer, in elements; None: one part behind another, in the order of ranks. Parts that
    are written do not overlap. Two ranks that disagree about a count get MISMATCH, which names both."""

    def all_to_all_v(self, send: BufferLike, send_counts: Sequence[int], recv: BufferLike,
                     recv_counts: Sequence[int], send_displs: Sequence[int] | None = None,
                     recv_displs: Sequence[int] | None = None, *, dtype: Any = None, stream: Any = None,
                     wait: bool = True) -> Request | None:
        """all_to_all with a count for each rank, both ways."""
        source, target = _pair(send, recv, dtype)
        out = Parts("send", source, send_counts, send_displs, self.size)
        back = Parts("recv", target, recv_counts, recv_displs, self.size)
        return self._post("all_to_all_v", (source.address, out.counts, out.displs, target.address, back.counts,
                                           back.displs, source.type), (source, target), stream, wait)

    def all_gather_v(self, send: BufferLike, recv: BufferLike, recv_counts: Sequence[int],
                     recv_displs: Sequence[int] | None = None, *, dtype: Any = None, stream: Any = None,
                     wait: bool = True) -> Request | None:
        """recv_counts: the same on every rank. send: recv_counts[rank] elements."""
        source, target = _pair(send, recv, dtype)
        parts = Parts("recv", target, recv_counts, recv_displs, self.size)
        _equal("send", source, parts.counts[self.rank])
        return self._post("all_gather_v", (source.address, target.address, parts.counts, parts.displs, source.type),
                          (source, target), stream, wait)

    def reduce_scatter_v(self, send: BufferLike, recv: BufferLike, recv_counts: Sequence[int],
                         op: str = "sum", *, dtype: Any = None, stream: Any = None,
                         wait: bool = True) -> Request | None:
        """recv_counts: the same on every rank. send: their sum; recv: recv_counts[rank] elements."""
        source, target = _pair(send, recv, dtype)
        parts = Parts("recv", source, recv_counts, None, self.size)
        _equal("send", source, sum(recv_counts))
        _equal("recv", target, parts.counts[self.rank])
        return self._post("reduce_scatter_v", (source.address, target.address, parts.counts, source.type,
                                               operator(op)), (source, target), stream, wait)

    def all_reduce_leaves(self, leaves: BufferLike, recv: BufferLike, leaf_counts: Sequence[int] | None = None,
                          op: str = "sum", *, dtype: Any = None, stream: Any = None,
                          wait: bool = True) -> Request | None:
        """The reduction of vectors of recv's length, called leaves, which the ranks hold in their order: this
        rank leaf_counts[rank] of them, one behind another. leaf_counts: the same on every rank; None: one each.
        The bits of recv do not depend on how many ranks hold the leaves, nor on who holds which."""
        source, target = _pair(leaves, recv, dtype)
        held = [1] * self.size if leaf_counts is None else [index(count) for count in leaf_counts]
        if len(held) != self.size or min(held) < 0 or not 0 < sum(held) <= 65536:
            raise ArgumentError(f"leaf_counts has one entry for each of {self.size} ranks, 0 or more, 65536 in all at most")
        _equal("leaves", source, held[self.rank] * target.count)
        return self._post("all_reduce_leaves", (source.address, (ctypes.c_size_t * self.size)(*held), target.address,
                                                target.count, source.type, operator(op)),
                          (source, target), stream, wait)

    def gather_v(self, send: BufferLike, recv: BufferLike | None = None,
                 recv_counts: Sequence[int] = (), recv_displs: Sequence[int] | None = None, root: int = 0,
                 *, dtype: Any = None, stream: Any = None, wait: bool = True) -> Request | None:
        """gather of parts of any length. recv and its lists are looked at on root."""
        source = target = look(send, "send", False, dtype)
        counts = displs = None
        if self._root(root):
            source, target = _pair(send, self._given("recv", recv), dtype)
            parts = Parts("recv", target, recv_counts, recv_displs, self.size)
            _equal("send", source, parts.counts[self.rank])
            counts, displs = parts.counts, parts.displs
        return self._post("gather_v", (source.address, source.count, target.address, counts, displs, source.type,
                                       root), (source, target), stream, wait)

    def scatter_v(self, send: BufferLike | None, recv: BufferLike, send_counts: Sequence[int] = (),
                  send_displs: Sequence[int] | None = None, root: int = 0, *, dtype: Any = None,
                  stream: Any = None, wait: bool = True) -> Request | None:
        """scatter of parts of any length. send and its lists are looked at on root."""
        source = target = look(recv, "recv", True, dtype)
        counts = displs = None
        if self._root(root):
            source, target = _pair(self._given("send", send), recv, dtype)
            parts = Parts("send", source, send_counts, send_displs, self.size)
            _equal("recv", target, parts.counts[self.rank])
            counts, displs = parts.counts, parts.displs
        return self._post("scatter_v", (source.address, counts, displs, target.address, target.count, target.type,
                                        root), (source, target), stream, wait)
