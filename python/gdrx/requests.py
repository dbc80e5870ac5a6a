# SPDX-License-Identifier: Apache-2.0
"""Calls that have not ended, and calls that start together.

Python raises KeyboardInterrupt behind a call of the library, whose result is then lost: so what a call
works on is noted before it.
"""
from __future__ import annotations

import contextlib
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
        self._asked = False  # the library was asked, and its answer is not known yet
        self._done = False
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

    def step(self, call: Any) -> bool:
        """Asks the library if it has not ended. In the communicator's turn."""
        if self._done:
            return True
        if not self._posted:
            return False
        lost, self._asked = self._asked and not self._handle, True
        result = call(self.pointer)
        if result != Result.IN_PROGRESS:
            error = None
            try:
                capi.check(result, self._communicator._handle)
            except Error as found:
                error = found
            # An answer that was lost is the communicator's to tell: what fails fails it.
            self._end(self._communicator.failure() if lost else error)
        self._asked = False
        return self._done

    def _drive(self, call: Any) -> bool:
        if not self._posted:
            raise ArgumentError("the request's group has not ended, so it was not posted yet")
        if not self._done:
            with self._communicator._turn():
                if not self.step(call):
                    return False
        if self._error is not None:
            self._communicator._notice()
            raise self._error
        return True

    def _end(self, error: Error | None) -> None:
        self._error = error
        self._done = True
        self._buffers = ()
        self._communicator._requests.pop(self, None)


class Group:
    """Calls of this thread, of any communicators, that start together at its end. See group()."""

    def __init__(self, timeout: float = 0.0):
        self._timeout = timeout
        self._kept: list[Any] = []
        self._raised = False

    def __enter__(self) -> Group:
        options = capi.CallOptions(ctypes.sizeof(capi.CallOptions), self._timeout)
        capi.check(capi.load().gdrxGroupStartWith(ctypes.byref(options)))
        self._raised = False
        _stack().append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        stack, refused = _stack(), None
        self._raised = self._raised or kind is not None
        try:
            refused = self._end(len(stack) == 1)
        finally:
            stack.pop()
            kept, self._kept = self._kept, []
            if stack:
                stack[-1]._kept += kept
                stack[-1]._raised = stack[-1]._raised or self._raised
            for request in kept if not stack else ():
                if isinstance(request, Request):
                    # What was posted and failed later has a handle, and says so itself.
                    request.posted(None if request._handle else refused)
        if refused is not None and kind is None and not stack:
            raise refused

    def _end(self, outermost: bool) -> Error | None:
        """Starts the calls, if it is the outermost; why none was, or one of them failed."""
        lib = capi.load()
        refused: Error | None = None
        with contextlib.ExitStack() as turns:
            if self._raised:
                refused = ArgumentError("the body of a group raised: none of its calls was started")
            elif outermost:
                try:
                    for communicator in {_communicator_of(kept): None for kept in self._kept}:
                        turns.enter_context(communicator._turn())
                except ArgumentError as error:
                    refused = error
            if refused is not None:
                lib.gdrxBarrier(None, None, None)  # a call that is refused, so that none of the group is started
            result = lib.gdrxGroupEnd()
            try:
                self._check(result)
            except Error as error:
                refused = refused or error
        return refused

    def _check(self, result: int) -> None:
        """The failure of a communicator has its rank; a refusal is the thread's."""
        for kept in self._kept:
            communicator = _communicator_of(kept)
            if result and communicator._failed():
                communicator._check(result)
        capi.check(result)


def _communicator_of(kept: Any) -> Any:
    return kept._communicator if isinstance(kept, Request) else kept[0]


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


def drop() -> None:
    """What was kept last was refused."""
    if _stack():
        _stack()[-1]._kept.pop()


def outside(what: str) -> None:
    """In a group the library would do it at the group's end, when nobody waits for it any more."""
    if _stack():
        raise ArgumentError(f"{what} cannot be in a group")
