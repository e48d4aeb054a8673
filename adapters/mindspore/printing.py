"""The ``repr`` of tensors, in the format of MindSpore 2.10.0; ``str`` is NumPy's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch

from collshim.mindspore.common.dtype import dtype_name

_ENDS = 3
"""The number of elements shown at each end of a shortened axis."""

_SHOWN = 6
"""The length above which an axis is shortened in an array with several axes."""

_SHOWN_ALONE = 1000
"""The length above which an array with one axis is shortened."""

_SCIENTIFIC = {torch.float16: (4, 11), torch.float32: (8, 15), torch.float64: (8, 15)}
"""The number of digits after the point, and the width."""


def text(tensor: torch.Tensor) -> str:
    """Return the shape, the dtype and the values; for long axes, only the first and last three elements."""
    lengths = ", ".join(map(str, tensor.shape))
    head = f"Tensor(shape=[{lengths}], dtype={dtype_name(tensor.dtype)}, value="
    if tensor.dim() == 0:
        return f"{head} {_alone(tensor.item())})"
    start = " " if tensor.dim() == 1 else "\n"
    if tensor.numel() == 0:
        return f"{head}{start})"
    longest = _SHOWN_ALONE if tensor.dim() == 1 else _SHOWN
    shown = [
        torch.arange(size) if size <= longest else torch.tensor([*range(_ENDS), *range(size - _ENDS, size)])
        for size in tensor.shape
    ]
    values = tensor[torch.meshgrid(*shown, indexing="ij")]
    printed = iter(_column(values.flatten().tolist(), tensor.dtype))
    if tensor.dim() == 1 and len(tensor) <= longest:
        of_a_line = 12 if tensor.dtype is torch.bool or tensor.dtype in _SCIENTIFIC else 24
        return f"{head}{start}[{_lines(list(printed), of_a_line)}])"
    return f"{head}{start}{_nested(printed, [size > longest for size in tensor.shape], values.shape)})"


def _alone(value: Any) -> str:
    if isinstance(value, complex):
        return f"{value.real:g}{value.imag:+g}j"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _column(values: list[Any], dtype: torch.dtype) -> list[str]:
    """Format values with equal widths, except complex numbers."""
    if dtype in _SCIENTIFIC:
        digits, width = _SCIENTIFIC[dtype]
        return [f"{value:.{digits}e}".rjust(width) for value in values]
    printed = [_alone(value) for value in values]
    width = 5 if dtype is torch.bool else 0 if dtype.is_complex else max(map(len, printed))
    return [value.rjust(width) for value in printed]


def _lines(printed: list[str], of_a_line: int) -> str:
    """Format an array with one axis; a line break follows each full line, even the last one."""
    lines = [", ".join(printed[start : start + of_a_line]) for start in range(0, len(printed), of_a_line)]
    return ", \n ".join(lines) + ("\n " if len(printed) % of_a_line == 0 else "")


def _nested(printed: Iterator[str], shortened: list[bool], sizes: Sequence[int], depth: int = 1) -> str:
    if len(sizes) == 1:
        row = list(islice(printed, sizes[0]))
        joined = ", ".join(row[:_ENDS]) + " ... " + ", ".join(row[_ENDS:]) if shortened[0] else ", ".join(row)
        return f"[{joined}]"
    rows = [_nested(printed, shortened[1:], sizes[1:], depth + 1) for _ in range(sizes[0])]
    if shortened[0]:
        rows.insert(_ENDS, "...")
    between = f"\n{' ' * depth}"
    return f"[{between.join(row if row == '...' or row is rows[-1] else f'{row},' for row in rows)}]"
