# SPDX-License-Identifier: Apache-2.0
"""Calls that have not ended, and calls that start together."""
from __future__ import annotations

import ctypes
import threading
from typing import Any

from gdrx import capi
from gdrx.errors import ArgumentError, Error, Result

_here = threading.local()  # the thread's open groups, as gdrxGroupStart has them


class Request:
    """A call that was given wait=False. It keeps its buffers until it has ended.

    test and wait are calls of its communicator: by one thread at a time."""

    def __init__(self, communicator: Any, buffers: tuple[Any, ...]):
        self._communicator = communicator
        self._buffers = buffers
        self._handle = ctypes.c_void_p()
        self._posted = False
        self._error: Error | None = None

    @property
    def pointer(self) -> Any:
        return ctypes.byref(self._handle)

    def test(self) -> bool:
        """True if the call is done. Raises Error if it failed."""
        return self._drive(capi.load().gdrxTest)

    def wait(self) -> None:
        """Returns when the call is done. Raises Error if it failed."""
        self._drive(capi.load().gdrxWait)

    def posted(self, error: Error | None = None) -> None:
        """It was posted, or refused."""
        self._posted = True
        if error is not None:
            self._end(error)

    def ended(self) -> None:
        """Its communicator has ended, and it with it: frees it, and keeps what it says."""
        result = capi.load().gdrxWait(self.pointer)
        text = capi.load().gdrxGetErrorString(result).decode()
        self._end(Error(result, f"gdrx: {text}") if result != Result.SUCCESS else None)

    def _drive(self, call: Any) -> bool:
        if not self._posted:
            raise ArgumentError("the request's group has not ended, so it was not posted yet")
        if self._handle:
            result = call(self.pointer)
            if result == Result.IN_PROGRESS:
                return False
            try:
                self._communicator._check(result)
            except Error as error:
                self._end(error)
            else:
                self._end(None)
        if self._error is not None:
            raise self._error
        return True

    def _end(self, error: Error | None) -> None:
        self._error = error
        self._buffers = ()
        self._communicator._requests.discard(self)


class Group:
    """Calls of this thread, of any communicators, that start together at its end. See group()."""

    def __init__(self, timeout: float = 0.0):
        self._timeout = timeout
        self._kept: list[Any] = []

    def __enter__(self) -> Group:
        options = capi.CallOptions(ctypes.sizeof(capi.CallOptions), self._timeout)
        capi.check(capi.load().gdrxGroupStartWith(ctypes.byref(options)))
        _stack().append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        lib = capi.load()
        if kind is not None:
            # A call that is refused, so that none of the group is started.
            lib.gdrxBarrier(None, None, None)
        result = lib.gdrxGroupEnd()
        _stack().pop()
        if _stack():
            _stack()[-1]._kept += self._kept
            return
        refused = None
        try:
            self._check(result)
        except Error as failure:
            refused = failure
        for kept in self._kept:
            if isinstance(kept, Request):
                # What was posted and failed later has a handle, and says so itself.
                kept.posted(None if kept._handle else refused)
        self._kept = []
        if refused is not None and kind is None:
            raise refused

    def _check(self, result: int) -> None:
        """The failure of a communicator has its rank; a refusal is the thread's."""
        for kept in self._kept:
            communicator = kept._communicator if isinstance(kept, Request) else kept[0]
            if result and communicator._failed():
                communicator._check(result)
        capi.check(result)


def _stack() -> list[Group]:
    found: list[Group] = _here.__dict__.setdefault("groups", [])
    return found


def group(timeout: float = 0.0) -> Group:
    """`with gdrx.group():` the calls in it start together at its end, so that exchanges cannot
    deadlock. Those with wait=True are waited for there. Groups nest. If one is refused, or the body
    raises, none is started.

    timeout: of each call in it, in seconds; 0: the communicator's; negative: none."""
    return Group(timeout)


def keep(kept: Any) -> bool:
    """Keeps a request, or (communicator, buffers), until the thread's group has ended. False: there
    is no group."""
    if not _stack():
        return False
    _stack()[-1]._kept.append(kept)
    return True
