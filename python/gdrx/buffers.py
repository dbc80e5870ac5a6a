# SPDX-License-Identifier: Apache-2.0
"""The memory behind an object: where it begins, how many elements it has, of which type.

Asked in this order: __cuda_array_interface__, __array_interface__, the buffer protocol, __dlpack__.
Nothing is copied, and numpy is not needed.
"""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
import sys
from typing import Any, NamedTuple, Protocol, Union

from gdrx import dlpack
from gdrx.errors import ArgumentError


class SupportsCuda(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...


class SupportsArray(Protocol):
    @property
    def __array_interface__(self) -> Any: ...


class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


# Any, too: before Python 3.12 there is no type for the buffer protocol.
BufferLike = Union[SupportsCuda, SupportsArray, SupportsDLPack, bytes, bytearray, memoryview, Any]

# Name: (number of gdrxDataType_t, bytes of an element).
TYPES = {
    "int8": (0, 1), "uint8": (1, 1), "int32": (2, 4), "uint32": (3, 4), "int64": (4, 8),
    "uint64": (5, 8), "float16": (6, 2), "bfloat16": (7, 2), "float32": (8, 4), "float64": (9, 8),
    "float8_e4m3fn": (10, 1), "float8_e5m2": (11, 1), "int16": (12, 2), "uint16": (13, 2),
    "bool": (14, 1), "complex64": (15, 8), "complex128": (16, 16), "longdouble": (17, 16),
    "byte": (18, 1), "float8_e4m3fnuz": (19, 1), "float8_e5m2fnuz": (20, 1), "float_int": (21, 8),
    "double_int": (22, 16), "long_int": (23, 16), "2int": (24, 8), "short_int": (25, 8),
    "longdouble_int": (26, 32),
}
_ALSO = {"float128": "longdouble", "bool_": "bool"}
_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
_FORMATS = {"b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "n": "i", "B": "u", "H": "u", "I": "u",
            "L": "u", "Q": "u", "N": "u", "c": "u", "e": "f", "f": "f", "d": "f", "g": "f",
            "Zf": "c", "Zd": "c", "?": "b"}


@dataclasses.dataclass(slots=True)
class Buffer:
    """Memory that the owner keeps."""

    address: int
    count: int
    type: int      # of gdrxDataType_t
    type_name: str
    bytes: int
    owner: object


class _Found(NamedTuple):
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in bytes
    item: int              # bytes of an element
    type_name: str         # empty: unknown
    said: str              # what the object calls its type
    read_only: bool
    owner: object


@functools.cache
def type_name(kind: str, item: int) -> str:
    """A type's name by its kind, a letter of __array_interface__, and its bytes."""
    if kind == "b" and item == 1:
        return "bool"
    name = f"{_KINDS.get(kind, '?')}{item * 8}"
    name = _ALSO.get(name, name)
    return name if name in TYPES else ""


def _of_interface(obj: Any, told: dict[str, Any], cuda: bool) -> _Found:
    letters = said = told["typestr"]
    digits = letters[2:].partition("[")[0]  # of datetime64, say, "<M8[ns]"
    if letters[1] in "OUt" or not digits.isdigit():  # references, letters of 4 bytes, bits
        raise ArgumentError(f"{_kind(obj)}: elements of {letters} are not taken")
    item = int(digits)
    name = type_name(letters[1], item)
    if cuda or not name:  # numpy takes 2 us for a type's name; on CUDA bfloat16 may have another's letters
        dtype = getattr(obj, "dtype", None)
        said = str(getattr(dtype, "name", dtype or letters)).rpartition(".")[2]  # torch.bfloat16 -> bfloat16
        name = said if said in TYPES and TYPES[said][1] == item else name
    if letters[0] == ">" and item > 1:
        name, said = "", f"{letters} in big-endian order"
    data = told.get("data")
    if data is None:
        raise ArgumentError(f"{_kind(obj)}: its interface does not say where its data is")
    if told.get("mask") is not None:
        raise ArgumentError(f"{_kind(obj)}: masked arrays are not taken")
    shape = tuple(told["shape"])
    owner: object = obj
    if isinstance(data, (tuple, list)):
        address, read_only = data[0] or 0, bool(data[1])  # None: it has no elements
    else:  # what has the memory, as Pillow's images give; made anew for each who asks
        memory, offset = _of_memory(memoryview(data)), told.get("offset", 0)
        there = memory.item * math.prod(memory.shape)
        if memory.strides is not None or not 0 <= offset <= there - item * math.prod(shape):
            raise ArgumentError(f"{_kind(obj)}: the memory that its interface gives is smaller than shape {shape}")
        address, read_only, owner = memory.address + offset, memory.read_only, memory.owner
    return _Found(address, shape, told.get("strides"), item, name, said, read_only, owner)


class _PyBuffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_void_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


def _of_memory(view: memoryview) -> _Found:
    address = 0
    if view.c_contiguous and view.nbytes:
        # The view keeps the memory where it is, so the address holds after the release.
        raw = _PyBuffer()
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(raw), 0)
        address = raw.buf or 0
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(raw))
    letters = view.format.lstrip("@=<")
    kind = _FORMATS.get(letters, "?")
    strides = None if view.c_contiguous else view.strides
    return _Found(address, view.shape or (), strides, view.itemsize, type_name(kind, view.itemsize),
                  f"format {view.format}", view.readonly, view)


def _of_dlpack(obj: Any) -> _Found:
    found = dlpack.look(obj)
    name = found.type_name or type_name(found.kind, found.item)
    return _Found(found.address, found.shape, found.strides, found.item, name, found.said,
                  found.read_only, (obj, found.capsule))


def _kind(obj: object) -> str:
    return type(obj).__name__


def _is_scalar(obj: Any) -> bool:
    """Of numpy. Its __array_interface__ tells of a copy that is already gone."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, numpy.generic)


def _find(obj: Any) -> _Found:
    for interface in ("__cuda_array_interface__", "__array_interface__") if not _is_scalar(obj) else ():
        try:
            told = getattr(obj, interface, None)
        except RuntimeError as error:  # torch's, of a tensor that requires a gradient
            raise ArgumentError(f"{_kind(obj)} gives no {interface}: {error}") from error
        if told is not None:
            return _of_interface(obj, told, "cuda" in interface)
    try:
        return _of_memory(memoryview(obj))
    except TypeError:
        pass
    except (BufferError, ValueError) as error:  # it was released or closed, or has no format for its type
        raise ArgumentError(f"{_kind(obj)} gives no buffer: {error}") from error
    if hasattr(obj, "__dlpack__"):
        return _of_dlpack(obj)
    raise ArgumentError(f"{_kind(obj)} is not memory: it has neither __cuda_array_interface__, "
                        "__array_interface__, the buffer protocol nor __dlpack__")


def _contiguous(found: _Found) -> bool:
    """In C's order; what an axis of one element or an empty array says does not matter."""
    if found.strides is None or 0 in found.shape:
        return True
    step = found.item
    for extent, stride in zip(reversed(found.shape), reversed(found.strides)):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def look(obj: Any, role: str, write: bool, dtype: Any = None) -> Buffer:
    """The memory of `obj`, of which the caller says its role and whether it is written.

    dtype: takes the bytes for elements of this type. Raises ArgumentError."""
    found = _find(obj)
    if not _contiguous(found):
        raise ArgumentError(f"{role} is not contiguous: shape {found.shape}, strides {found.strides}")
    if write and found.read_only:
        raise ArgumentError(f"{role} is read-only, and the call writes to it")
    total = found.item * math.prod(found.shape)
    name = found.type_name
    if dtype is not None:
        if getattr(dtype, "byteorder", "=") == ">":
            raise ArgumentError(f"dtype {dtype} is in big-endian order")
        asked = str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype)).rpartition(".")[2]
        name = _ALSO.get(asked, asked)
    if name not in TYPES:
        said = f"dtype {dtype}" if dtype is not None else f"{role} has elements of {found.said}, which"
        raise ArgumentError(f"{said} is not a type of gdrx: give dtype=, one of {', '.join(TYPES)}")
    number, item = TYPES[name]
    if total % item:
        raise ArgumentError(f"{role} has {total} bytes, which are no whole number of {name}")
    return Buffer(found.address, total // item, number, name, total, found.owner)
