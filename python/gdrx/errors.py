# SPDX-License-Identifier: Apache-2.0
"""What goes wrong: a code, one line of text, and the rank it is about."""
from __future__ import annotations

import enum


class Result(enum.IntEnum):
    """gdrxResult_t of gdrx_types.h."""

    SUCCESS = 0
    INVALID_ARGUMENT = 1
    SYSTEM_ERROR = 2
    UNSUPPORTED = 3
    TIMEOUT = 4
    ABORTED = 5
    PEER_LOST = 6
    MISMATCH = 7
    PROTOCOL_ERROR = 8
    INTERNAL_ERROR = 9
    IN_PROGRESS = 10


class Error(RuntimeError):
    """A call failed.

    code: why, a Result.
    text: one line that says what, where and what to do.
    rank: the rank that is lost, with PEER_LOST; else None.
    """

    def __init__(self, code: int, text: str, rank: int | None = None):
        super().__init__(text)
        self.code = Result(code)
        self.text = text
        self.rank = rank


class ArgumentError(Error, ValueError):
    """An argument was refused before anything was posted: other ranks have not noticed, and the
    communicator is as it was."""

    def __init__(self, text: str):
        super().__init__(Result.INVALID_ARGUMENT, f"gdrx: {text}")
