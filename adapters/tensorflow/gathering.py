"""TensorFlow's functions that read and write the elements of a tensor at given positions. Gradients are torch's.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim.tensorflow import string_functions
from collshim.tensorflow.arithmetic import axis_of, tensor
from collshim.tensorflow.arithmetic import tensor as as_tensor
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.string_functions import or_of_strings
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name


@or_of_strings(string_functions.gather)
@checked
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Return the slices of ``params`` along ``axis`` at ``indices``, in the shape of ``indices``.

    Args:
        params: the tensor.
        indices: integers.
        validate_indices: not used.
        axis: by default ``batch_dims``.
        batch_dims: the number of leading axes that ``params`` and ``indices`` share.
        name: not used.

    Raises:
        InvalidArgumentError: an index or the axis is outside, or the indices are not integers.
    """
    value, places = tensor(params), tensor(indices)
    if places.is_floating_point() or places.dtype is torch.bool:
        raise invalid_argument(f"Value for attr 'Tindices' of {dtype_name(places.dtype)} is not an integer dtype")
    batch = batch_dims + places.dim() if batch_dims < 0 else batch_dims
    place = batch if axis is None else axis_of(axis)
    if not -value.dim() <= place < value.dim():
        raise invalid_argument(f"Expected axis in the range [{-value.dim()}, {value.dim()}), but got {place}")
    return adopt(_gathered(value, places.long(), place % value.dim(), batch))


def _gathered(value: torch.Tensor, places: torch.Tensor, axis: int, batch: int) -> torch.Tensor:
    if batch:
        parts = zip(value.unbind(0), places.unbind(0), strict=True)
        return torch.stack([_gathered(part, its, axis - 1, batch - 1) for part, its in parts])
    require_places(places.reshape(-1, 1), value.shape[axis : axis + 1])
    found = value.index_select(axis, places.reshape(-1))
    return found.reshape([*value.shape[:axis], *places.shape, *value.shape[axis + 1 :]])


@checked
def scatter_nd(indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: str | None = None) -> Tensor:
    """Add ``updates`` to zeros of ``shape``, at ``indices`` of shape ``(..., axes indexed)``."""
    places, values = tensor(indices).long(), tensor(updates)
    whole = torch.zeros(lengths_of(shape), dtype=values.dtype)
    require_updates(places, values, whole.shape)
    return adopt(whole.index_put(tuple(places.unbind(-1)), values, accumulate=True))


@or_of_strings(string_functions.gather_nd)
@checked
def gather_nd(
    params: Any, indices: Any, batch_dims: int = 0, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """Return the elements at ``indices``, whose last axis holds positions: ``result[i] = params[indices[i]]``.

    ``batch_dims`` is the number of leading axes that both share; the last argument has no effect.
    """
    value, places = as_tensor(params), as_tensor(indices)
    if places.is_floating_point() or places.dtype is torch.bool:
        raise invalid_argument(f"Value for attr 'Tindices' of {dtype_name(places.dtype)} is not an integer dtype")
    return adopt(_gathered_nd(value, places.long(), batch_dims))


def _gathered_nd(value: torch.Tensor, places: torch.Tensor, batch: int) -> torch.Tensor:
    if batch:
        parts = zip(value.unbind(0), places.unbind(0), strict=True)
        return torch.stack([_gathered_nd(part, its, batch - 1) for part, its in parts])
    require_places(places, value.shape)
    return value[tuple(places.unbind(-1))]


@checked
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Return ``tensor`` with ``updates[i]`` at ``indices[i]``."""
    whole, places = as_tensor(tensor), as_tensor(indices).long()
    values = as_tensor(updates, None if hasattr(updates, "dtype") else whole.dtype)
    require_updates(places, values, whole.shape)
    return adopt(whole.index_put(tuple(places.unbind(-1)), values))


def require_places(places: torch.Tensor, shape: Sequence[int]) -> None:
    """Refuse positions outside ``shape``, including negative ones, which torch would count from the end."""
    depth = places.shape[-1]
    if depth > len(shape):
        raise invalid_argument(f"indices have {depth} places each, should have at most {len(shape)}: one for each axis")
    outside = ((places < 0) | (places >= torch.tensor(list(shape[:depth]), dtype=places.dtype))).any(-1)
    if outside.any():
        where = outside.nonzero()[0].tolist()
        raise invalid_argument(
            f"indices{where} = {places[tuple(where)].tolist()} does not index into shape {list(shape)}"
        )


def require_updates(places: torch.Tensor, values: torch.Tensor, shape: Sequence[int]) -> None:
    """Refuse positions outside ``shape``, and values that do not have the shape of what is at the positions."""
    require_places(places, shape)
    wanted = [*places.shape[:-1], *shape[places.shape[-1] :]]
    if list(values.shape) != wanted:
        raise invalid_argument(f"updates have shape {list(values.shape)}, should have {wanted}")
