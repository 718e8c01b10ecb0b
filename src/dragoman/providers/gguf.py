"""Writes GGUF, llama.cpp's file format: named values, and tensors copied unchanged."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO, Final

import msgspec

__all__ = ["F32", "Tensor", "Value", "write_gguf"]

Value = str | bool | int | float | Sequence[str] | Sequence[int]
"""Numbers are written with 32 bits: `int` unsigned, in a list signed."""

F32: Final = 0
"""The type of tensors of 32-bit floats."""

_MAGIC = b"GGUF"
_VERSION = 3
# bytes; what the format takes for granted where a file says nothing
_ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9


class Tensor(msgspec.Struct, frozen=True):
    """A tensor, and where its bytes are in another file."""

    name: str
    """Its name in the file."""
    shape: tuple[int, ...]
    """Outermost dimension first, as numpy and safetensors have it."""
    start: int
    """Offset of its first byte in the other file."""
    end: int
    """Offset behind its last byte."""
    number_type: int = F32
    """Type of its numbers, as GGUF counts them."""


def write_gguf(
    out: BinaryIO, values: Mapping[str, Value], tensors: Sequence[Tensor], data: BinaryIO
) -> None:
    """Writes a whole GGUF file; the tensors' bytes are read from `data`."""
    out.write(_MAGIC + struct.pack("<IQQ", _VERSION, len(tensors), len(values)))
    out.writelines(_dump_string(name) + _dump_value(value) for name, value in values.items())
    offset = 0
    for tensor in tensors:
        # GGUF lists the innermost dimension first.
        shape = struct.pack(f"<{len(tensor.shape)}Q", *reversed(tensor.shape))
        out.write(_dump_string(tensor.name) + struct.pack("<I", len(tensor.shape)) + shape)
        out.write(struct.pack("<IQ", tensor.number_type, offset))
        offset += _round_up(tensor.end - tensor.start)
    out.write(bytes(_round_up(out.tell()) - out.tell()))
    for tensor in tensors:
        data.seek(tensor.start)
        size = tensor.end - tensor.start
        out.write(data.read(size) + bytes(_round_up(size) - size))


def _round_up(size: int) -> int:
    """Rounds a size up to the alignment."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _dump_string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _dump_value(value: Value) -> bytes:
    """Encodes a value with its type for GGUF."""
    match value:
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _UINT32, value)
        case float():
            return struct.pack("<If", _FLOAT32, value)
        case str():
            return struct.pack("<I", _STRING) + _dump_string(value)
        case _:
            return _dump_array(value)


def _dump_array(values: Iterable[str | int]) -> bytes:
    """Encodes a list of texts or numbers for GGUF."""
    items = list(values)
    if items and isinstance(items[0], str):
        item_type, data = _STRING, b"".join(_dump_string(str(item)) for item in items)
    else:
        item_type, data = _INT32, struct.pack(f"<{len(items)}i", *items)
    return struct.pack("<IIQ", _ARRAY, item_type, len(items)) + data
