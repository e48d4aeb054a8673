"""Checkpoint files, in the formats of MindSpore 2.10.0.

A ``.ckpt`` file is a protobuf message: for each parameter a field 1 with its name (1) and a tensor (2), which has
its dimensions (1), its dtype's name (2) and its bytes (3). A string has the dimension 0, the dtype "str", and UTF-32.
A large parameter is split into several parts. ``.safetensors`` files have a JSON header.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.dtype import dtype_name, torch_dtype

__all__ = ["pack", "pack_safetensors", "unpack", "unpack_safetensors"]
_CRC = b"crc_num"
_PART = 512 * 2**20
"""The maximum number of bytes in a part."""

_SAFE = {"float": "F", "int": "I", "uint": "U", "bfloat": "BF"}


def pack(named: list[tuple[str, Any]], crc_check: bool = False) -> bytes:
    """Return the content of a ``.ckpt`` file with these tensors and strings."""
    parts = []
    for name, value in named:
        if isinstance(value, str):
            kind, sizes, content = "str", [0], value.encode("utf-32-le")
        else:
            kind, sizes, content = dtype_name(value.dtype), list(value.shape), _content(value)
        for start in range(0, max(len(content), 1), _PART):
            dims = b"".join(b"\x08" + _varint(size) for size in sizes)
            tensor = dims + _field(2, kind.encode()) + _field(3, content[start : start + _PART])
            parts.append(_field(1, _field(1, name.encode()) + _field(2, tensor)))
    whole = b"".join(parts)
    return whole + _CRC + zlib.crc32(whole).to_bytes(10, "big") if crc_check else whole


def unpack(whole: bytes, path: str, crc_check: bool = False) -> dict[str, torch.Tensor | str]:
    """Return the tensors and strings in the content of a ``.ckpt`` file, by name.

    Raises:
        ValueError: the file has a different format, or its checksum is wrong.
    """
    if whole[-17:-10] == _CRC:
        whole, crc = whole[:-17], int.from_bytes(whole[-10:], "big")
        if crc_check and zlib.crc32(whole) != crc:
            refuse(ValueError, f"For 'load_checkpoint', the crc check of {path!r} failed: the file is damaged")
    try:
        entries = [dict(_fields(entry)) for _, entry in _fields(whole)]
        found: dict[str, torch.Tensor | str] = {}
        for name, parts in groupby(entries, lambda entry: entry[1]):
            tensors = [list(_fields(part[2])) for part in parts]
            content = b"".join(value for tensor in tensors for number, value in tensor if number == 3)
            found[name.decode()] = _value(tensors[0], content)
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeDecodeError, RuntimeError, ValueError) as error:
        refuse(ValueError, f"Failed to read the checkpoint file {path}. The file may be corrupted: {error}")
    return found


def pack_safetensors(named: list[tuple[str, Any]]) -> bytes:
    """Return the content of a ``.safetensors`` file with these tensors, by name; as in MindSpore, without strings."""
    header: dict[str, Any] = {"__metadata__": {"format": "ms"}}
    contents, end = [], 0
    for name, value in sorted((pair for pair in named if not isinstance(pair[1], str)), key=lambda pair: pair[0]):
        content = _content(value)
        kind = str(value.dtype).removeprefix("torch.")
        letters = kind.rstrip("0123456789")
        dtype = "BOOL" if kind == "bool" else _SAFE[letters] + kind.removeprefix(letters)
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [end, end + len(content)]}
        contents.append(content)
        end += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(contents)


def unpack_safetensors(whole: bytes, path: str) -> dict[str, torch.Tensor | str]:
    """Return the tensors in the content of a ``.safetensors`` file, by name.

    Raises:
        ValueError: the file has a different format.
    """
    letters = {letter: kind for kind, letter in _SAFE.items()}
    try:
        start = 8 + int.from_bytes(whole[:8], "little")
        found: dict[str, torch.Tensor | str] = {}
        for name, entry in json.loads(whole[8:start]).items():
            if name == "__metadata__":
                continue
            letter = entry["dtype"].rstrip("0123456789")
            kind = "bool" if letter == "BOOL" else letters[letter] + entry["dtype"].removeprefix(letter)
            first, last = entry["data_offsets"]
            found[name] = _tensor(whole[start + first : start + last], getattr(torch, kind), entry["shape"])
    except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
        refuse(ValueError, f"Failed to read the checkpoint file {path}. The file may be corrupted: {error}")
    return found


def _content(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().as_subclass(torch.Tensor).contiguous().reshape(-1)
    return flat.view(torch.uint8).cpu().numpy().tobytes()


def _tensor(content: bytes, dtype: torch.dtype, sizes: list[int]) -> torch.Tensor:
    if not content:
        return torch.empty(sizes, dtype=dtype)
    return torch.frombuffer(bytearray(content), dtype=dtype).reshape(sizes)


def _value(tensor: list[tuple[int, Any]], content: bytes) -> torch.Tensor | str:
    sizes = [value for number, value in tensor if number == 1]
    (kind,) = (value.decode() for number, value in tensor if number == 2)
    if kind == "str":
        return content.decode("utf-32-le")
    return _tensor(content, torch_dtype(kind), [] if sizes == [0] and content else sizes)


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value, an int or bytes, of each field in a protobuf message."""
    place = 0
    while place < len(content):
        key, place = _read_varint(content, place)
        value, place = _read_varint(content, place)
        if key & 7 == 2:
            if place + value > len(content):
                raise ValueError("it ends within a field")
            yield key >> 3, content[place : place + value]
            place += value
        elif key & 7 == 0:
            yield key >> 3, value
        else:
            raise ValueError(f"it has a field of kind {key & 7}")


def _read_varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
