"""Converts between the forms of parts; nothing here communicates.

The canonical form of one part per rank is rank-leading, ``(size, *shape)``. The concatenated form along axis 0 is the
same memory, so conversions are views; along another axis they take one strided write.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

_WRITABLE = 0x200
_view_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_view_memory.restype, _view_memory.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)

Parts: TypeAlias = "Tensor | Sequence[Tensor]"


def concatenated(stacked: Tensor, axis: int = 0) -> Tensor:
    """Convert ``(size, *shape)`` to ``shape`` with ``axis`` times ``size``, a view for axis 0; 0-d to ``(size,)``."""
    if stacked.dim() < 2:
        return stacked
    axis = axis + stacked.dim() - 1 if axis < 0 else int(axis)  # True is not an int to torch
    return stacked.flatten(0, 1) if axis == 0 else stacked.movedim(0, axis).flatten(axis, axis + 1)


def split(tensor: Tensor, size: int, axis: int = 0) -> Tensor:
    """Cut ``tensor`` into ``size`` equal parts along ``axis``, rank-leading: ``(size, *part)``; always a view."""
    shape = tensor.shape
    axis = axis + len(shape) if axis < 0 else int(axis)
    parted = tensor.view(*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :])
    return parted if axis == 0 else parted.movedim(axis, 0)


def listed(parts: Parts) -> list[Tensor]:
    """Return one tensor per rank; views if ``parts`` is rank-leading."""
    return list(parts.unbind(0)) if isinstance(parts, Tensor) else list(parts)


def nbytes_of(parts: Parts | None) -> int:
    """Return the number of bytes in all parts; 0 if there are none."""
    if parts is None:
        return 0
    return parts.nbytes if isinstance(parts, Tensor) else sum(part.nbytes for part in parts)


def joined(parts: Parts) -> Tensor | None:
    """Return the parts as one flat tensor without a copy, or None if they are not adjacent in memory."""
    if isinstance(parts, Tensor):
        return parts.flatten() if parts.is_contiguous() else None
    return _adjacent(parts) if parts else None


def _adjacent(parts: Sequence[Tensor]) -> Tensor | None:
    first, end = parts[0], parts[0].storage_offset()
    if len(parts) > 1 and parts[1].storage_offset() != end + first.numel():
        return None
    for part in parts:
        if part.storage_offset() != end or not part.is_contiguous() or not _shares_storage(part, first):
            return None
        end += part.numel()
    return first.as_strided((end - first.storage_offset(),), (1,))


def _shares_storage(part: Tensor, other: Tensor) -> bool:
    return part.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def flat(parts: Parts) -> Tensor:
    """Return the parts as one flat tensor; a copy only if they are not adjacent in memory."""
    whole = joined(parts)
    if whole is not None:
        return whole
    return torch.cat([part.reshape(-1) for part in listed(parts)])


def cut(whole: Tensor, shapes: Sequence[Sequence[int]]) -> list[Tensor]:
    """View a flat tensor as parts of the given shapes, in order."""
    pieces = whole.split([math.prod(shape) for shape in shapes])
    return [piece.view(tuple(shape)) for piece, shape in zip(pieces, shapes, strict=True)]


def fill(out: Parts, parts: Parts) -> None:
    """Write ``parts`` into ``out``, part by part; the caller guarantees equal shapes."""
    if isinstance(out, Tensor) and isinstance(parts, Tensor):
        out.copy_(parts)
    elif isinstance(out, Tensor) and out.is_contiguous() and not _lies_within(parts, out):
        torch.stack(list(parts), out=out)
    else:
        targets = out if type(out) is list else listed(out)
        sources = parts if type(parts) is list else listed(parts)
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)


def _lies_within(parts: Parts, whole: Tensor) -> bool:
    """Return whether a part lies in the memory of ``whole``: torch cannot stack a tensor onto itself."""
    start = whole.data_ptr()
    end = start + whole.nbytes
    return any(start <= part.data_ptr() < end for part in parts)


def as_bytes(tensor: Tensor) -> Tensor:
    """Return a contiguous tensor's memory as flat bytes, a view."""
    whole = tensor.as_strided((tensor.numel(),), (1,))  # one element may have any stride and count as contiguous
    return torch.view_as_real(whole).view(-1).view(torch.uint8) if whole.is_complex() else whole.view(torch.uint8)


def buffer(tensor: Tensor) -> memoryview:
    """Return a contiguous CPU tensor's memory as bytes; the caller keeps the tensor alive.

    ``Tensor.numpy`` would prevent the storage from ever being resized again, which FSDP needs.
    """
    view: memoryview = _view_memory(tensor.data_ptr(), tensor.nbytes, _WRITABLE)
    return view


def put_shared(own: Tensor, values: Tensor) -> bool:
    """Copy ``values`` into a tensor whose elements share memory; return False if any that do got different values."""
    reach = sum((length - 1) * stride for length, stride in zip(own.shape, own.stride(), strict=True))
    memory = own.as_strided((reach + 1,), (1,))
    indices = torch.arange(reach + 1, device=own.device).as_strided(own.shape, own.stride(), 0)
    memory[indices.reshape(-1)] = values.reshape(-1)
    return torch.equal(as_bytes(own.contiguous()), as_bytes(values.contiguous()))


def needs_grad(parts: Parts) -> bool:
    """Return whether a part needs a gradient, and gradients are recorded."""
    if not torch.is_grad_enabled():
        return False
    return parts.requires_grad if isinstance(parts, Tensor) else any(part.requires_grad for part in parts)


def shapes_of(parts: Sequence[Tensor]) -> tuple[tuple[int, ...], ...]:
    """Return the shape of each part."""
    return tuple(tuple(part.shape) for part in parts)


def are_equal(parts: Sequence[Tensor]) -> bool:
    """Return whether the parts have one shape."""
    return all(part.shape == parts[0].shape for part in parts)
