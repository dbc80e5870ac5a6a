# SPDX-License-Identifier: Apache-2.0
"""gdrx.Communicator: how it is made, looked at, and ended."""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

from gdrx import capi, environment, requests
from gdrx.buffers import BufferLike, look
from gdrx.calls import stream_handle
from gdrx.errors import ArgumentError, Error, Result
from gdrx.requests import Request
from gdrx.uneven import UnevenCalls

TEXT_BYTES = 64 * 1024


class Waiting(NamedTuple):
    """Whom the running calls wait for."""

    ranks: tuple[int, ...]  # those that are late
    running: int            # calls that run
    behind: int             # calls that wait for those to end
    seconds: float          # for which the oldest has run
    text: str               # a line for each call


def _config(algorithm: str | None, transport: str | None, timeout: float, gpu: int | None,
            gpu_blocks: int, reproducible: bool) -> capi.Config:
    config = capi.Config(ctypes.sizeof(capi.Config), algorithm.encode() if algorithm else None,
                         transport.encode() if transport else None, timeout)
    config.gpu_blocks = capi.whole(gpu_blocks, "gpu_blocks")
    config.reproducible = 1 if reproducible else 0
    if gpu is not None:
        config.gpus = (ctypes.c_int * 1)(capi.whole(gpu, "gpu"))
    return config


class Communicator(UnevenCalls):
    """Ranks that make the same collective calls in the same order.

    Made by every rank at once: gdrx.Communicator(id, rank, size), from_mpi or from_environment.
    Ended by every rank at once: finalize, or the end of `with`. If the body of `with` raises, all ranks
    get ABORTED.

    Threads: one at a time uses a communicator, and another gets ArgumentError; abort, late, failure and
    set_timeout are for any. Calls let go of Python's lock. Ctrl-C is noticed when a call returns.

    Errors: a communicator that has failed stays so, and every later call raises the first reason.
    """

    rank: int
    size: int

    def __init__(self, id: bytes, rank: int, size: int, *, algorithm: str | None = None,
                 transport: str | None = None, timeout: float = 0.0, gpu: int | None = None,
                 gpu_blocks: int = 0, reproducible: bool = False):
        """id: of unique_id(), the same on every rank. Returns when all ranks have come.

        algorithm, transport: names as in GDRX_ALGO and GDRX_TRANSPORT. None: GDRX_* or the default.
        timeout: of each call, in seconds; 0: GDRX_TIMEOUT, or 300; negative: none.
        gpu: CUDA's number of this rank's GPU. None: the one that is current.
        gpu_blocks: multiprocessors that calls may keep busy; 0: the default.
        reproducible: sums in the order of ranks, the same bits whatever the size; False: GDRX_REPRODUCIBLE."""
        if len(id) != capi.ID_BYTES:
            raise ArgumentError(f"id has {len(id)} bytes, not the {capi.ID_BYTES} of unique_id()")
        config = _config(algorithm, transport, timeout, gpu, gpu_blocks, reproducible)
        ranks, number = capi.whole(size, "size"), capi.whole(rank, "rank")
        self._begin(lambda made: capi.check(capi.load().gdrxCommInitRank(
            made, ranks, capi.UniqueId.from_buffer_copy(id), number, ctypes.byref(config))))

    @classmethod
    def from_mpi(cls, mpi: Any, **options: Any) -> Communicator:
        """Of the ranks of an mpi4py communicator, which is used during the call only. Options: as of
        Communicator."""
        made: Any = None
        if mpi.Get_rank() == 0:
            try:
                made = capi.unique_id()
            except Error as error:
                made = (int(error.code), error.text)
        made = mpi.bcast(made, root=0)
        if not isinstance(made, bytes):
            raise Error(*made)
        return cls(made, mpi.Get_rank(), mpi.Get_size(), **options)

    @classmethod
    def from_environment(cls, id_file: str | os.PathLike[str] | None = None, *,
                         env: Mapping[str, str] = os.environ, **options: Any) -> Communicator:
        """Of the ranks that mpirun, srun or torchrun started.

        id_file: a path that all ranks see and that does not exist yet; rank 0 leaves the id there for as
        long as the others take to come. None: a folder of this host that only this user can read,
        which serves ranks of one host. Options: as of Communicator."""
        place = environment.place(env)
        with environment.shared_id(place, id_file) as made:
            return cls(made, place.rank, place.size, **options)

    def _begin(self, make: Callable[[Any], None]) -> bool:
        """False: no communicator was made."""
        requests.outside("making a communicator")
        lib, handle = capi.load(), ctypes.c_void_p()
        self._handle: ctypes.c_void_p | None = None
        self._using = threading.RLock()   # the thread that is in a call
        self._ending = threading.Lock()
        self._requests: dict[Request, None] = {}  # the oldest first
        self._told = False
        self._process = os.getpid()
        self._counts: dict[str, list[int]] = {}
        try:
            make(ctypes.byref(handle))
        finally:  # Ctrl-C is raised behind the call: then __del__ ends what was made
            self._handle = handle if handle else None
        if self._handle is None:
            return False
        number = ctypes.c_int()
        self._check(lib.gdrxCommUserRank(handle, ctypes.byref(number)))
        self.rank = number.value
        self._check(lib.gdrxCommCount(handle, ctypes.byref(number)))
        self.size = number.value
        return True

    def _child(self, make: Callable[[Any], int]) -> Communicator | None:
        made = type(self).__new__(type(self))
        with self._turn():
            return made if made._begin(lambda place: self._check(make(place))) else None

    def _own_process(self) -> None:
        if self._process != os.getpid():
            raise ArgumentError("the communicator is of the process that this one was forked from")

    def _live(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ArgumentError("the communicator was finalized")
        self._own_process()
        return self._handle

    def _take(self) -> ctypes.c_void_p:
        """The turn of this thread, until self._using.release()."""
        if not self._using.acquire(blocking=False):
            self._own_process()
            raise ArgumentError("another thread is in a call of this communicator: one at a time uses it")
        try:
            return self._live()
        except ArgumentError:
            self._using.release()
            raise

    @contextlib.contextmanager
    def _turn(self) -> Iterator[ctypes.c_void_p]:
        handle = self._take()
        try:
            yield handle
        finally:
            self._using.release()

    def _check(self, result: int) -> None:
        try:
            capi.check(result, self._handle)
        except Error:
            self._notice()
            raise

    def _notice(self) -> None:
        """If it has failed, that is told now."""
        self._told = self._told or self._failed()

    def _failed(self) -> bool:
        code = ctypes.c_int()
        if self._handle is None:
            return False
        capi.load().gdrxCommGetAsyncError(self._handle, ctypes.byref(code))
        return code.value not in (Result.SUCCESS, Result.IN_PROGRESS)

    def _post(self, name: str, arguments: tuple[Any, ...], buffers: tuple[Any, ...], stream: Any,
              wait: bool) -> Request | None:
        place = stream_handle(stream)
        request = None if wait else Request(self, buffers)
        handle = self._take()
        try:
            if self._requests:
                self._reap()
            grouped = requests.keep(request or (self, buffers))
            if request is not None:
                self._requests[request] = None
                request._posted = not grouped
            result = capi.call(name)(*arguments, handle, place, request.pointer if request else None)
            if result:
                requests.drop()
                if request is not None:
                    self._requests.pop(request)
                self._check(result)
            count = self._counts.setdefault(name, [0, 0])
            count[0] += 1
            count[1] += buffers[0].bytes if buffers else 0
        finally:
            self._using.release()
        return request

    def _reap(self) -> None:
        """The oldest requests that have ended let go of their buffers: it may be that nobody asks them."""
        for request in list(self._requests):
            if not request.step(capi.load().gdrxTest):
                break

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Collective. Ranks of one color get a communicator of their own, in the order of their keys, then
        of their ranks. color None: none. Both are used and finalized each by itself."""
        number, place = capi.NO_COLOR if color is None else capi.whole(color, "color"), capi.whole(key, "key")
        return self._child(lambda made: capi.load().gdrxCommSplit(self._handle, number, place, made, None))

    def shrink(self, exclude: Sequence[int]) -> Communicator:
        """A communicator of the ranks that stay, in their order; they alone call it, with the same list.
        This one may have failed, by the death of those that are left out. It is finalized afterwards."""
        ranks = (ctypes.c_int * len(exclude))(*(capi.whole(rank, "rank") for rank in exclude))
        made = self._child(lambda place: capi.load().gdrxCommShrink(self._handle, ranks, len(exclude), place, None))
        assert made is not None
        return made

    def set_timeout(self, seconds: float) -> None:
        """The timeout of later calls; 0: what the communicator was made with; negative: none."""
        self._own_process()
        with self._ending:
            capi.check(capi.load().gdrxCommSetTimeout(self._live(), seconds), self._handle)

    def abort(self) -> None:
        """Ends every call here and on all ranks with ABORTED. From any thread. Still to be finalized."""
        self._own_process()
        with self._ending:
            if self._handle is not None:
                capi.check(capi.load().gdrxCommAbort(self._handle), self._handle)
                self._told = True

    def finalize(self) -> None:
        """Collective: waits until every rank has come as far, then frees. Twice is as good as once.

        Raises Error if a rank did not come, or why the communicator failed if nothing raised that yet.
        It is freed all the same."""
        if self._handle is None:
            return
        requests.outside("finalize")
        with self._turn():
            self._finalize()

    def _finalize(self) -> None:
        failed, told = self.failure(), self._told
        alone = None
        if failed is None:
            try:
                self._check(capi.load().gdrxCommFinalize(self._handle, None))
            except Error as error:
                alone = error
        result = self._destroy()
        if failed is not None:
            if not told:
                raise failed
        elif alone is not None:
            raise alone
        else:
            capi.check(result)

    def _destroy(self) -> int:
        with self._ending:
            handle, self._handle = self._handle, None
        result: int = capi.load().gdrxCommDestroy(handle)
        for request in list(self._requests):
            request.ended()
        return result

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.finalize()
        elif self._handle is not None and self._process == os.getpid():
            self.abort()
            with self._using:  # a call of another thread ends first
                if self._handle is not None:
                    self._destroy()

    def __del__(self) -> None:
        # A forked child has a copy, which owns nothing.
        if getattr(self, "_handle", None) is not None and self._process == os.getpid():
            self.abort()
            self._destroy()
            warnings.warn("gdrx: a communicator was dropped without finalize(): it is aborted", ResourceWarning,
                          source=self)

    def __reduce__(self) -> Any:
        raise TypeError("a gdrx.Communicator cannot be copied or pickled: use split")

    def __repr__(self) -> str:
        return f"<gdrx.Communicator rank {self.rank} of {self.size}{'' if self._handle else ', finalized'}>"

    def failure(self) -> Error | None:
        """Why the communicator has failed; None if it has not. From any thread, never blocks."""
        self._own_process()
        with self._ending:
            code = ctypes.c_int()
            if self._handle is None:
                return None
            capi.load().gdrxCommGetAsyncError(self._handle, ctypes.byref(code))
            try:
                capi.check(0 if code.value == Result.IN_PROGRESS else code.value, self._handle)
            except Error as error:
                return error
        return None

    def late(self) -> Waiting:
        """Whom the running calls wait for. From any thread, also while another is in a call."""
        self._own_process()
        with self._ending:
            ranks, text = (ctypes.c_int * self.size)(), ctypes.create_string_buffer(TEXT_BYTES)
            found = capi.Waiting(ctypes.sizeof(capi.Waiting), ranks, self.size, ctypes.addressof(text), TEXT_BYTES)
            capi.check(capi.load().gdrxCommGetWaiting(self._live(), ctypes.byref(found)), self._handle)
        return Waiting(tuple(ranks[:found.rank_count]), found.calls, found.behind, found.seconds,
                       text.value.decode(errors="replace"))

    def explain(self, what: int | BufferLike) -> str:
        """Why an all_reduce of so many bytes, or of this buffer, runs as it does: the candidates with
        predicted times."""
        size = int(what) if isinstance(what, Integral) else look(what, "buffer", False).bytes
        if not 0 <= size < 2**63:
            raise ArgumentError(f"{size} bytes are out of range")
        text = ctypes.create_string_buffer(TEXT_BYTES)
        with self._turn() as handle:
            self._check(capi.load().gdrxCommExplain(handle, size, text, TEXT_BYTES))
        return text.value.decode(errors="replace")

    def stats(self) -> dict[str, Any]:
        """calls: by name, how many (count) and the bytes of this rank's send buffers. last: what the last call
        that ended was, and what it cost here. memory: bytes that the communicator holds."""
        lib = capi.load()
        last, memory = capi.OpInfo(ctypes.sizeof(capi.OpInfo)), capi.MemoryInfo(ctypes.sizeof(capi.MemoryInfo))
        with self._turn() as handle:
            self._check(lib.gdrxCommGetLastOp(handle, ctypes.byref(last)))
            self._check(lib.gdrxCommGetMemory(handle, ctypes.byref(memory)))
        return {"calls": {name: {"count": count, "bytes": size} for name, (count, size) in self._counts.items()},
                "last": _fields(last), "memory": _fields(memory)}


def _fields(info: ctypes.Structure) -> dict[str, Any]:
    values = {field[0]: getattr(info, field[0]) for field in info._fields_ if field[0] != "size"}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}
