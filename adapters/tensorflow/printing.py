"""``tf.print``: prints values, with tensors in TensorFlow's form. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from pprint import pformat
from typing import Any
from urllib.parse import urlparse

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow import structures
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data_types import DType
from collshim.tensorflow.string_tensor import StringTensor
from collshim.tensorflow.tensor import plain

_BY_DIGITS = {torch.float64: (15, 17)}
_FLOATS = (6, 9)  # the decimal digits that are tried, and those that always suffice


class _Shown:
    """A tensor within a structure, which ``pformat`` shows by its text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def print(*inputs: Any, **kwargs: Any) -> None:
    """Print values; tensors are shown without shape and dtype, such as ``[0 1 2 ... 7 8 9]``.

    Args:
        inputs: anything; tensors may be in nested structures.
        kwargs: ``output_stream``: ``sys.stderr`` (the default), ``sys.stdout``, or a text ``file://PATH`` for a file to
            append to. ``summarize``: the number of elements shown at each end of an axis, by default 3; -1 for all.
            ``sep``: the text between the values. ``end``: the text after them. ``name``: without effect.

    Raises:
        ValueError: an argument is unknown, or there is no such stream.
    """
    stream, limit = kwargs.pop("output_stream", sys.stderr), kwargs.pop("summarize", 3)
    end, separator = kwargs.pop("end", None), kwargs.pop("sep", None)
    kwargs.pop("name", None)
    if kwargs:
        raise ArgumentValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    shown = (" " if separator is None else separator).join(_text(value, limit) for value in inputs)
    _write(shown + ("\n" if end is None else end), stream)


def _write(text: str, stream: Any) -> None:
    if stream is sys.stdout or stream is sys.stderr:
        stream.write(text)
        stream.flush()
        return
    if isinstance(stream, str) and stream.startswith("file://"):
        parsed = urlparse(stream)
        with Path(parsed.netloc + parsed.path).open("a", encoding="utf-8") as file:
            file.write(text)
        return
    raise ArgumentValueError(
        f"Unsupported output stream, logging level, or file.{stream}. Supported streams are sys.stdout, sys.stderr; a "
        "file needs to be in the form of 'file://<filepath>'"
    )


def _text(value: Any, limit: int | None) -> str:
    if isinstance(value, str):
        return value
    return pformat(_marked(value, limit), width=1_000_000, sort_dicts=True)


def _marked(value: Any, limit: int | None) -> Any:
    """Return the value with its tensors replaced by objects that show TensorFlow's text."""
    if isinstance(value, torch.Tensor) or hasattr(value, "_as_tensor"):
        return _Shown(tensor_text(plain(convert_to_tensor(value)).detach().cpu(), limit))
    if isinstance(value, StringTensor):
        return _Shown(_string_text(value.tolist(), value.ndim))
    if isinstance(value, torch.dtype):
        return _Shown(repr(DType(value)))
    if structures.is_nested(value) and value:
        return structures.map_structure(lambda leaf: _marked(leaf, limit), value)
    return value


def _string_text(values: Any, depth: int) -> str:
    """Return text, and lists of it in brackets."""
    if isinstance(values, bytes):
        return values.decode(errors="replace") if depth == 0 else f'"{values.decode(errors="replace")}"'
    return f"[{' '.join(_string_text(part, depth) for part in values)}]"


def tensor_text(values: torch.Tensor, limit: int | None) -> str:
    """Return the text of a tensor, with at most ``limit`` elements at each end of an axis; None or -1 for all."""
    if values.dim() == 0:
        return _number(values)
    return _nested(values, values.shape[0] if limit in (None, -1) else int(limit or 0), limit in (None, -1), 1)


def _nested(values: torch.Tensor, limit: int, has_all: bool, depth: int) -> str:
    count = values.shape[0]
    parts = list(range(count))
    is_cut = not has_all and count > 2 * limit
    if is_cut:
        parts = parts[:limit] + parts[count - limit :]
    shown = [
        _number(values[place]) if values.dim() == 1 else _nested(values[place], limit, has_all, depth + 1)
        for place in parts
    ]
    if is_cut:
        shown.insert(limit, "...")
    between = " " if values.dim() == 1 else "\n" * (values.dim() - 1) + " " * depth
    return f"[{between.join(shown)}]"


def _number(value: torch.Tensor) -> str:
    if value.dtype is torch.bool:
        return str(int(value))
    if value.is_complex():
        return f"({_number(value.real)},{_number(value.imag)})"
    number = value.item()
    if not value.is_floating_point():
        return str(number)
    kept = value.dtype if value.dtype is torch.float64 else torch.float32
    short, full = _BY_DIGITS.get(kept, _FLOATS)
    text = f"{number:.{short}g}"
    same = torch.tensor(float(text), dtype=kept) == value.to(kept)
    return text if same or number != number else f"{number:.{full}g}"
