# SPDX-License-Identifier: Apache-2.0
"""The C API by ctypes, which lets go of Python's lock during every call."""
from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p
from operator import index
from typing import Any

from gdrx import library
from gdrx.errors import ArgumentError, Error, Result

ID_BYTES = 128
NO_COLOR = -1


def whole(number: Any, what: str) -> int:
    """A C int. ctypes would take its last 32 bits in silence."""
    found = index(number)
    if not -2**31 <= found < 2**31:
        raise ArgumentError(f"{what} {found} is out of range")
    return found


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * ID_BYTES)]


class Config(ctypes.Structure):
    """gdrxConfig_t."""

    _fields_ = [("size", c_size_t), ("algorithm", c_char_p), ("transport", c_char_p),
                ("timeout_seconds", c_double), ("on_error", c_void_p), ("on_error_user", c_void_p),
                ("gpu_blocks", c_int), ("reserved", c_int), ("gpus", POINTER(c_int)),
                ("reproducible", c_int)]


class CallOptions(ctypes.Structure):
    """gdrxCallOptions_t."""

    _fields_ = [("size", c_size_t), ("timeout_seconds", c_double)]


class AsyncErrorInfo(ctypes.Structure):
    """gdrxAsyncErrorInfo_t."""

    _fields_ = [("size", c_size_t), ("result", c_int), ("origin", c_int), ("subject", c_int)]


class OpInfo(ctypes.Structure):
    """gdrxOpInfo_t."""

    _fields_ = [("size", c_size_t), ("algorithm", c_char * 24), ("transport", c_char * 24),
                ("slices", c_uint64), ("messages_sent", c_uint64), ("messages_received", c_uint64),
                ("plan_sends", c_uint64), ("plan_receives", c_uint64), ("predicted_us", c_double),
                ("registered", c_int)]


class MemoryInfo(ctypes.Structure):
    """gdrxMemoryInfo_t."""

    _fields_ = [("size", c_size_t)] + [(f"{name}_bytes", c_uint64) for name in (
        "shared", "message", "scratch", "pinned", "allocated", "registered", "gpu", "gpu_allocated",
        "gpu_registered")]


class Waiting(ctypes.Structure):
    """gdrxWaiting_t."""

    _fields_ = [("size", c_size_t), ("ranks", POINTER(c_int)), ("rank_capacity", c_int),
                ("text", c_void_p), ("text_capacity", c_size_t), ("calls", c_int),
                ("behind", c_int), ("seconds", c_double), ("rank_count", c_int)]


# Letters of the table below. A call ends in communicator, stream and request.
_KINDS = {"p": c_void_p, "n": c_size_t, "i": c_int, "d": c_double, "s": c_char_p,
          "l": POINTER(c_size_t), "I": POINTER(c_int), "P": POINTER(c_void_p), "u": UniqueId}
_RESULTS = {
    "GetUniqueId": "p", "CommInitRank": "Piuip", "CommSplit": "piiPp", "CommShrink": "pIiPp",
    "CommFinalize": "pP", "CommDestroy": "p", "CommAbort": "p", "CommGetAsyncError": "pI",
    "CommGetAsyncErrorInfo": "pp", "CommCount": "pI", "CommUserRank": "pI",
    "CommGetLastOp": "pp", "CommExplain": "pnsn", "CommDescribe": "psn", "CommGetMemory": "pp",
    "CommGetWaiting": "pp", "CommSetTimeout": "pd", "GroupStart": "", "GroupEnd": "",
    "GroupStartWith": "p", "Test": "P", "Wait": "P",
    "AllReduce": "ppniippP", "ReduceScatter": "ppniippP", "AllGather": "ppnippP",
    "Broadcast": "ppniippP", "Reduce": "ppniiippP", "Scan": "ppniippP", "Exscan": "ppniippP",
    "AllToAll": "ppnippP", "Gather": "ppniippP", "Scatter": "ppniippP",
    "AllToAllv": "pllpllippP", "Gatherv": "pnplliippP", "Scatterv": "pllpniippP",
    "AllGatherv": "ppllippP", "ReduceScatterv": "ppliippP",
    "AllReduceLeaves": "plpniippP", "Barrier": "ppP",
    "Send": "pniippP", "Recv": "pniippP",
}


@functools.cache
def load() -> ctypes.CDLL:
    """libgdrx, with the types of its calls. Raises OSError with the places that were looked at."""
    found = ctypes.CDLL(str(library.path()))
    for name, letters in _RESULTS.items():
        function = getattr(found, f"gdrx{name}")
        function.restype = c_int
        function.argtypes = [_KINDS[letter] for letter in letters]
    found.gdrxGetErrorString.restype = c_char_p
    found.gdrxGetErrorString.argtypes = [c_int]
    found.gdrxGetLastError.restype = c_char_p
    found.gdrxGetLastError.argtypes = [c_void_p]
    return found


@functools.cache
def call(name: str) -> Any:
    """The library's call of a communicator's: all_to_all_v is gdrxAllToAllv."""
    return getattr(load(), "gdrx" + name.title().replace("_V", "v").replace("_", ""))


def check(result: int, handle: c_void_p | None = None) -> None:
    """Raises an Error with what the communicator, or else this thread, has to say."""
    if result == 0:
        return
    lib = load()
    text = (lib.gdrxGetLastError(handle) or lib.gdrxGetErrorString(result)).decode(errors="replace")
    rank = None
    if handle is not None:
        info = AsyncErrorInfo(size=ctypes.sizeof(AsyncErrorInfo))
        if lib.gdrxCommGetAsyncErrorInfo(handle, ctypes.byref(info)) == 0 and info.result == result:
            rank = info.subject if info.subject >= 0 else None
    if result == Result.INVALID_ARGUMENT:
        raise ArgumentError(text)
    raise Error(result, text, rank)


def unique_id() -> bytes:
    """128 bytes by which ranks find each other: made by one rank, handed to the others by any means.

    It holds the address of the rank that makes it, which must be one of the ranks. It is a secret,
    as gdrx.h says of gdrxUniqueId."""
    made = UniqueId()
    check(load().gdrxGetUniqueId(ctypes.byref(made)))
    return bytes(made)
