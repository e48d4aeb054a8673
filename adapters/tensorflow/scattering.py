"""Methods that write single rows of a variable, ``scatter_sub``, ``scatter_nd_add`` and so on, and such functions.

If an index occurs several times, every occurrence counts; for ``update``, only the last. Source: TensorFlow 2.21, CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import checked
from collshim.tensorflow.function_names import name_functions
from collshim.tensorflow.gathering import gather, gather_nd, require_places, require_updates
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.tensor import Tensor, adopt, plain

Change = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def _reducing(reduce: str) -> Change:
    def changed(whole: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        places = rows.reshape(-1, *[1] * (whole.dim() - 1)).expand_as(values)
        return whole.scatter_reduce(0, places, values, reduce)

    return changed


def _divide(whole: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    divisors = _reducing("prod")(torch.ones_like(whole), rows, values)
    return torch.div(whole, divisors, rounding_mode=None if whole.is_floating_point() else "trunc")


CHANGES: dict[str, Change] = {
    "sub": lambda whole, rows, values: whole.index_add(0, rows, values, alpha=-1),
    "add": lambda whole, rows, values: whole.index_add(0, rows, values),
    "mul": _reducing("prod"),
    "div": _divide,
    "min": _reducing("amin"),
    "max": _reducing("amax"),
    "update": lambda whole, rows, values: whole.index_copy(0, rows, values),
}


def _changed_nd(change: str, whole: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    require_places(places, whole.shape)
    depth = places.shape[-1]
    outer, inner = whole.shape[:depth], whole.shape[depth:]
    strides = torch.tensor([prod(outer[axis + 1 :]) for axis in range(depth)], dtype=torch.long)
    rows = (places * strides).sum(-1).reshape(-1)
    found = CHANGES[change](whole.reshape(-1, *inner), rows, values.reshape(-1, *inner))
    return found.reshape(whole.shape)


def _tensor_scatter(change: str) -> Callable[..., Tensor]:
    @checked
    def scatter(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        whole, places = plain(convert_to_tensor(tensor)), plain(convert_to_tensor(indices)).long()
        values = plain(convert_to_tensor(updates, None if hasattr(updates, "dtype") else whole.dtype))
        require_updates(places, values, whole.shape)
        return adopt(_changed_nd(change, whole, places, values))

    scatter.__doc__ = f"Return ``tensor`` with the change {change!r} by ``updates[i]`` at ``indices[i]``."
    return scatter


tensor_scatter_nd_add, tensor_scatter_nd_sub = _tensor_scatter("add"), _tensor_scatter("sub")
tensor_scatter_nd_max, tensor_scatter_nd_min = _tensor_scatter("max"), _tensor_scatter("min")
name_functions(globals())


class Scatters:
    """The methods ``scatter_*``, for classes with ``_scatter(change, slices)``, whose result each returns."""

    def _scatter(self, change: str, sparse_delta: IndexedSlices) -> Any:
        raise NotImplementedError

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtract the slices from the variable's rows."""
        return self._scatter("sub", sparse_delta)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Add the slices to the variable's rows."""
        return self._scatter("add", sparse_delta)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiply the variable's rows by the slices."""
        return self._scatter("mul", sparse_delta)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Divide the variable's rows by the slices."""
        return self._scatter("div", sparse_delta)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace elements of the variable's rows by those of the slices that are smaller."""
        return self._scatter("min", sparse_delta)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace elements of the variable's rows by those of the slices that are larger."""
        return self._scatter("max", sparse_delta)

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace the variable's rows by the slices."""
        return self._scatter("update", sparse_delta)


def require_slices(value: Any) -> None:
    """Refuse a value that is not ``IndexedSlices``."""
    if not isinstance(value, IndexedSlices):
        raise ArgumentTypeError(f"Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {value}")


class Rows(Scatters):
    """The methods for a class with one tensor: ``value()`` of ``dtype``, which ``_rewrite(change)`` writes."""

    dtype: Any

    def value(self) -> Any:
        """Return the tensor."""
        raise NotImplementedError

    def _rewrite(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        raise NotImplementedError

    def _scatter(self, change: str, sparse_delta: IndexedSlices) -> Any:
        require_slices(sparse_delta)
        rows = plain(convert_to_tensor(sparse_delta.indices)).long()
        values = self._convert(sparse_delta.values)

        def changed(whole: torch.Tensor) -> torch.Tensor:
            require_places(rows.reshape(-1, 1), whole.shape[:1])
            given = values.broadcast_to(rows.shape + whole.shape[1:]) if values.dim() == 0 else values
            return CHANGES[change](whole, rows.reshape(-1), given.reshape(-1, *whole.shape[1:]))

        return self._rewrite(changed)

    def _scatter_nd(self, change: str, indices: Any, updates: Any) -> Any:
        places, values = plain(convert_to_tensor(indices)).long(), self._convert(updates)
        return self._rewrite(lambda whole: _changed_nd(change, whole, places, values))

    def _convert(self, values: Any) -> torch.Tensor:
        found: torch.Tensor = plain(convert_to_tensor(values, self.dtype)).detach()
        return found

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract ``updates[i]`` at ``indices[i]``, whose last axis holds positions."""
        return self._scatter_nd("sub", indices, updates)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add ``updates[i]`` at ``indices[i]``."""
        return self._scatter_nd("add", indices, updates)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Write ``updates[i]`` at ``indices[i]``."""
        return self._scatter_nd("update", indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Write ``updates[i]`` at ``indices[i]`` if it is larger."""
        return self._scatter_nd("max", indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Write ``updates[i]`` at ``indices[i]`` if it is smaller."""
        return self._scatter_nd("min", indices, updates)

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """Return the elements at ``indices``."""
        return gather_nd(self.value(), indices)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Return the rows at ``indices``."""
        return gather(self.value(), indices)
