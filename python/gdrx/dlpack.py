# SPDX-License-Identifier: Apache-2.0
"""What a DLPack capsule says. Layouts: dlpack.h, versions 0 and 1."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

from gdrx.errors import ArgumentError

_HOST = (1, 3, 11)  # CPU, CUDA's pinned memory, ROCm's
_CUDA = (2, 13)     # CUDA, CUDA's managed memory
_READ_ONLY = 1
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_NAMES = {4: "bfloat16", 10: "float8_e4m3fn", 11: "float8_e4m3fnuz", 12: "float8_e5m2",
          13: "float8_e5m2fnuz"}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _Tensor)]


class Look(NamedTuple):
    """A tensor: `capsule` keeps its memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in bytes
    item: int
    kind: str              # a letter of __array_interface__
    type_name: str         # where no such letter has it
    said: str
    read_only: bool
    capsule: object


def _pointer(capsule: object) -> tuple[int, bool]:
    """(address of what the capsule holds, whether it is of version 1)."""
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = c_void_p
    for name in (b"dltensor_versioned", b"dltensor"):
        if api.PyCapsule_IsValid(capsule, name):
            return api.PyCapsule_GetPointer(capsule, name), name != b"dltensor"
    raise ArgumentError("__dlpack__ gave no capsule of a tensor")


def look(obj: Any) -> Look:
    """Asks `obj`. Nothing is waited for: whoever gives a stream has the tensor ready in it."""
    device = obj.__dlpack_device__()[0] if hasattr(obj, "__dlpack_device__") else 1
    told = {"stream": -1} if device in _CUDA else {}
    try:
        try:
            capsule = obj.__dlpack__(max_version=(1, 0), **told)
        except TypeError:  # it is from before version 1
            capsule = obj.__dlpack__(**told)
    except (BufferError, RuntimeError, ValueError) as error:
        raise ArgumentError(f"{type(obj).__name__} gives no DLPack tensor: {error}") from error
    address, versioned = _pointer(capsule)
    flags = 0
    if versioned:
        whole = _Versioned.from_address(address)
        if whole.major != 1:
            raise ArgumentError(f"DLPack {whole.major}.{whole.minor} is not known here")
        tensor, flags = whole.tensor, whole.flags
    else:
        tensor = _Tensor.from_address(address)
    if tensor.device_type not in _HOST + _CUDA:
        raise ArgumentError(f"memory of DLPack's device type {tensor.device_type} is not taken")
    if tensor.lanes != 1 or tensor.bits % 8:
        raise ArgumentError(f"elements of {tensor.lanes} x {tensor.bits} bits are not taken")
    item = tensor.bits // 8
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] * item for i in range(tensor.ndim)) if tensor.strides else None
    return Look((tensor.data or 0) + tensor.byte_offset, shape, strides, item,
                _KINDS.get(tensor.code, "?"), _NAMES.get(tensor.code, ""),
                f"DLPack's type {tensor.code} of {tensor.bits} bits", bool(flags & _READ_ONLY), capsule)
