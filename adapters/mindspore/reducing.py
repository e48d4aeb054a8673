"""The methods of ``mindspore.Tensor`` that reduce, sort or accumulate along axes (source: MindSpore 2.10.0).

They take torch's argument names too, because torch's own functions call them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.adapting.refusing import refuse

__all__ = ["Reducing", "along", "deviation", "in_own_dtype", "norm_of", "places", "product"]

_NAMES = {"axis": "dim", "keepdims": "keepdim", "keep_dims": "keepdim"}
_NARROW = (torch.bool, torch.int8, torch.uint8, torch.int16, torch.int32)


def along(function: Callable[..., Any], tensor: Any, axis: Any = None, keep: bool = False, **more: Any) -> Any:
    """Call a torch reduction along ``axis``; None and an empty tuple mean all axes."""
    return function(tensor, every_axis(tensor, axis), keepdim=keep, **more)


def every_axis(tensor: Any, axis: Any) -> Any:
    """Return ``axis`` as an int or a tuple; None and an empty tuple mean all axes."""
    if isinstance(axis, int):
        return axis
    return tuple(axis or ()) or tuple(range(tensor.dim()))


def product(tensor: Any, axis: Any = None, keep: bool = False, dtype: Any = None) -> Any:
    """Return the product along these axes, or along all."""
    return one_by_one(torch.prod, tensor, axis, keep, dtype=dtype)


def one_by_one(function: Callable[..., Any], tensor: Any, axis: Any, keep: bool, **more: Any) -> Any:
    """Reduce axes one after the other, from the last one, with a torch function that takes one axis."""
    axes = every_axis(tensor, axis)
    for place in sorted(each % max(tensor.dim(), 1) for each in ((axes,) if isinstance(axes, int) else axes))[::-1]:
        tensor = function(tensor, place, keep, **more)
    return tensor


def mean_of(tensor: Any, axis: Any = None, keep: bool = False, dtype: Any = None) -> Any:
    """Return the mean along these axes, or along all; a mean of integers is truncated to an integer."""
    if dtype is None and not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool):
        return along(torch.mean, tensor.to(torch.float64), axis, keep).to(tensor.dtype)
    return torch.mean(tensor, every_axis(tensor, axis), keep, dtype=dtype)


def norm_of(tensor: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Return the norm of all elements or, with ``ord`` or ``dim``, of vectors or matrices, as NumPy does.

    The gradient of the Euclidean norm of zeros is NaN, and that of a maximum goes to its first place.
    """
    own = tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.to(torch.float32)
    own = own if dtype is None else own.to(dtype)
    of_vectors = isinstance(dim, int) or len(dim or own.shape) == 1
    if ord in (None, "fro") or (ord == 2 and of_vectors):
        return torch.sqrt(along(torch.sum, torch.square(own.abs() if own.is_complex() else own), dim, keepdim))
    if ord == float("inf") and of_vectors:
        return torch.max(own.abs(), every_axis(own, dim) if isinstance(dim, int) else (dim or (0,))[0], keepdim)[0]
    return torch.linalg.norm(own, ord, dim, keepdim, dtype=dtype)


def deviation(tensor: Any, axis: Any, ddof: int, keep: bool) -> Any:
    """Return the standard deviation with the divisor n - ``ddof``; if it is 0, its gradient is NaN."""
    return torch.sqrt(torch.var(tensor, axis, correction=ddof, keepdim=keep))


def in_own_dtype(tensor: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Return cumulative sums, in int32 for integers that are not longer; without ``axis``, of all elements."""
    narrow = torch.int32 if tensor.dtype in _NARROW else None
    flat = tensor.reshape(-1) if axis is None else tensor
    return torch.cumsum(flat, 0 if axis is None else axis, dtype=dtype or narrow)


def places(found: Any) -> tuple[Any, Any]:
    """Return a pair of values and indices with the indices in int32."""
    return found[0], found[1].to(torch.int32)


class Reducing(torch.Tensor):
    """A torch tensor with MindSpore's forms of these methods."""

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Return the sum; arguments are ``(axis, dtype, keepdims, initial)`` or ``(dim, keepdim, dtype=...)``."""
        first = kwargs.pop("initial", None)
        found = self._reduce(torch.sum, args, kwargs)
        return found if first is None else found + first

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Return the mean; arguments are ``(axis, keep_dims, dtype)``. The mean of integers is truncated."""
        return self._reduce(lambda tensor, dim, keepdim, **more: mean_of(tensor, dim, keepdim, **more), args, kwargs)

    def prod(self, *args: Any, **kwargs: Any) -> Any:
        """Return the product; arguments are ``(axis, keepdims, dtype)``."""
        return self._reduce(lambda tensor, dim, keepdim, **more: product(tensor, dim, keepdim, **more), args, kwargs)

    def all(self, *args: Any, **kwargs: Any) -> Any:
        """Return whether all elements are true; arguments are ``(axis, keep_dims)``."""
        return self._reduce(torch.all, args, kwargs)

    def any(self, *args: Any, **kwargs: Any) -> Any:
        """Return whether any element is true; arguments are ``(axis, keep_dims)``."""
        return self._reduce(torch.any, args, kwargs)

    def logsumexp(self, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the sum of exponentials; arguments are ``(axis, keepdims)``."""
        return self._reduce(torch.logsumexp, args, kwargs)

    def _reduce(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = {_NAMES.get(name, name): value for name, value in kwargs.items()}
        axes, options = args, list[Any]()
        if not (len(args) > 1 and all(type(each) is int for each in args)):
            axes, options = args[:1], list(args[1:])
        if axes:
            given["dim"] = axes[0] if len(axes) == 1 else axes
        given |= {"dtype" if isinstance(each, torch.dtype) else "keepdim": each for each in options}
        more = {name: value for name, value in given.items() if name not in ("dim", "keepdim") and value is not None}
        return function(self, every_axis(self, given.get("dim")), keepdim=bool(given.get("keepdim")), **more)

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """Return the maximum; with its indices along ``dim``, or along ``axis`` with ``return_indices``."""
        return self._extreme(torch.max, torch.amax, args, kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """Return the minimum; with its indices along ``dim``, or along ``axis`` with ``return_indices``."""
        return self._extreme(torch.min, torch.amin, args, kwargs)

    def _extreme(self, with_places: Any, alone: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if args and (args[0] is None or isinstance(args[0], list | tuple)):
            kwargs = {"axis": args[0], **({"keepdims": args[1]} if len(args) > 1 else {}), **kwargs}
        elif "axis" not in kwargs and (args or "dim" in kwargs):
            found = with_places(self, *args, **kwargs)
            return found if isinstance(found, torch.Tensor) else tuple(found)
        axis, keep = kwargs.get("axis"), kwargs.get("keepdims", False)
        if isinstance(axis, int) and (kwargs.get("return_indices") or kwargs.get("where", True) is True):
            found = with_places(self, axis, keepdim=keep)
            return tuple(found) if kwargs.get("return_indices") else found[0]
        return alone(self._chosen(kwargs), every_axis(self, axis), keepdim=keep and axis is not None)

    def _chosen(self, named: dict[str, Any]) -> torch.Tensor:
        """Return the elements, with ``initial`` in place of those for which ``where`` is false."""
        chosen = named.get("where", True)
        if chosen is True:
            return self
        if named.get("initial") is None:
            refuse(ValueError, "the 'initial' must be a number if there is a 'where', but got None")
        return torch.where(chosen, self, torch.as_tensor(named["initial"], dtype=self.dtype))

    def std(self, axis: Any = None, ddof: int = 0, keepdims: bool = False, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the standard deviation along ``axis``, or of all elements, with the divisor n - ``ddof``."""
        return self._spread(torch.std, axis, ddof, keepdims, kwargs)

    def var(self, axis: Any = None, ddof: int = 0, keepdims: bool = False, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the variance along ``axis``, or of all elements, with the divisor n - ``ddof``."""
        return self._spread(torch.var, axis, ddof, keepdims, kwargs)

    def _spread(self, of: Any, axis: Any, ddof: int, keep: bool, named: dict[str, Any]) -> Any:
        """Compute a variance; with one of torch's names for an argument, its divisor is n - 1."""
        by_torch = {"correction": int(named.pop("unbiased"))} if "unbiased" in named else {}
        own = {"dim": axis, "keepdim": keep, "correction": 1 if named else int(ddof)} | named | by_torch
        return of(self._floating(), **own)

    def _floating(self) -> torch.Tensor:
        return self if self.is_floating_point() or self.is_complex() else self.to(torch.float32)

    def norm(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``ops.norm``; with torch's name ``p``, torch's norm."""
        return torch.norm(self, *args, **kwargs) if "p" in kwargs else norm_of(self, *args, **kwargs)

    def cumsum(self, axis: Any = None, dtype: Any = None, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return cumulative sums along ``axis``, or of all elements; int32 for integers up to 32 bits."""
        return in_own_dtype(self, kwargs.pop("dim", axis), dtype)

    def argmin(self, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the index of the least element, of all or along ``axis``, in int32."""
        axis, keepdims = kwargs.pop("dim", axis), kwargs.pop("keepdim", keepdims)
        return torch.argmin(self, axis, keepdims and axis is not None, **kwargs).to(torch.int32)

    def argmax(self, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the index of the greatest element, of all or along ``axis``."""
        axis, keepdims = kwargs.pop("dim", axis), kwargs.pop("keepdim", keepdims)
        own = self.to(torch.uint8) if self.dtype is torch.bool else self
        return torch.argmax(own, axis, keepdims and axis is not None, **kwargs)

    def argsort(self, axis: int = -1, descending: bool = False, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the indices that sort the elements along ``axis``, in int32."""
        return torch.argsort(self, kwargs.pop("dim", axis), descending, **kwargs).to(torch.int32)

    def sort(self, axis: int = -1, descending: bool = False, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the sorted elements along ``axis``, and their indices in int32."""
        return places(torch.sort(self, kwargs.pop("dim", axis), descending, **kwargs))

    def topk(self, k: Any, dim: Any = None, largest: bool = True, sorted: bool = True) -> Any:
        """Return the ``k`` greatest elements along ``dim``, by default the last axis, and their indices in int32."""
        return places(torch.topk(self, k, -1 if dim is None else dim, largest, sorted))

    def cummin(self, *args: Any, **kwargs: Any) -> Any:
        """Return the least elements so far along ``axis``, and their indices in int32."""
        return places(torch.cummin(self, *args, **{_NAMES.get(name, name): value for name, value in kwargs.items()}))

    def nansum(self, *args: Any, **kwargs: Any) -> Any:
        """Return the sum along ``axis``, with 0 for each element that is not a number; integers keep up to 32 bits."""
        if self.dtype in _NARROW:
            kwargs.setdefault("dtype", torch.int32)
        return self._reduce(torch.nansum, args, kwargs)
