"""Methods of ``mindspore.Tensor`` whose arguments or results differ from torch's (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.reducing import Reducing, along, places

__all__ = ["Methods", "products"]


def products(input: Any, other: Any) -> Any:
    """Return the sum of products over the last axis and the other tensor's last axis but one, for ``dot``."""
    if min(input.dim(), other.dim()) < 2:
        text = f"but got {input.dim()} and {other.dim()} axes"
        refuse(ValueError, f"For 'dot', both inputs should have at least two axes, {text}")
    axes: Any = [input.dim() - 1], [other.dim() - 2]
    return torch.tensordot(input, other, dims=axes)


class Methods(Reducing):
    """A torch tensor with MindSpore's forms of these methods."""

    def __floordiv__(self, other: Any) -> Any:
        """Return the quotient, rounded down, without a gradient."""
        return torch.div(self, other, rounding_mode="floor")

    def __rfloordiv__(self, other: Any) -> Any:
        return torch.div(torch.as_tensor(other), self, rounding_mode="floor")

    def __rmod__(self, other: Any) -> Any:
        return torch.remainder(torch.as_tensor(other), self)

    def __float__(self) -> float:
        return torch.Tensor.__float__(self.detach())

    def __int__(self) -> int:
        return torch.Tensor.__int__(self.detach())

    def item(self) -> Any:
        """Return the only element as a number.

        Raises:
            ValueError: there is not exactly one element.
        """
        if self.numel() != 1:
            text = f"but got {self.numel()}, more than one element is ambiguous"
            refuse(ValueError, f"The tensor should have only one element, {text}.")
        return torch.Tensor.item(self)

    def itemset(self, *args: Any) -> Any:
        """Return a copy with another value at a flat index or a tuple of indices; the only element needs no index.

        Raises:
            IndexError: the index is out of range; or there is none, and not exactly one element.
        """
        if len(args) == 1 and self.numel() != 1:
            text = f"but the tensor shape is {tuple(self.shape)} and got 1 input"
            refuse(IndexError, f"Only tensor which shape is (1,) support 1 arg that means omit index, {text}.")
        place = 0 if len(args) == 1 else args[0]
        if isinstance(place, int) and not -self.numel() <= place < self.numel():
            refuse(IndexError, f"index {place} is out of bounds for axis 0 with size {self.numel()}")
        made = self.clone()
        with torch.no_grad():
            (made.view(-1) if isinstance(place, int) else made)[place] = args[-1]
        return made

    def diag(self, *args: Any, **kwargs: Any) -> Any:
        """Return a tensor with the elements on its diagonal: of shape ``shape + shape``; with arguments, as torch."""
        if args or kwargs or self.dim() < 2:
            return torch.diag(self, *args, **kwargs)
        return torch.diag(self.reshape(-1)).reshape((*self.shape, *self.shape))

    def dot(self, other: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # MindSpore's name
        """Return the sum of products over the last axis and the other tensor's last axis but one.

        Raises:
            ValueError: a tensor has fewer than two axes.
        """
        return products(self, other)

    def flatten(self, order: Any = "C", *more: Any, **named: Any) -> Any:  # type: ignore[override]
        """Return the elements in one axis, in the order "C" or "F"; with ``start_dim``, as torch.

        Raises:
            ValueError: the order is unknown.
        """
        if not isinstance(order, str):
            return torch.flatten(self, order, *more, **named)
        if order not in ("C", "F"):
            refuse(ValueError, f"For 'flatten', the 'order' must be 'C' or 'F', but got {order!r}")
        own = self.permute(tuple(range(self.dim() - 1, -1, -1))) if order == "F" else self
        return torch.flatten(own, *more, **named)

    def select(self, *args: Any, **kwargs: Any) -> Any:
        """Return elements where a condition is true, those of ``y`` elsewhere; with ``(dim, index)``, as torch."""
        condition = args[0] if args else kwargs.get("condition")
        if not isinstance(condition, torch.Tensor):
            return torch.select(self, *args, **kwargs)
        other = args[1] if len(args) > 1 else kwargs["y"]
        return torch.where(condition, self, torch.as_tensor(other, dtype=self.dtype))

    def take(self, indices: Any, axis: Any = None, mode: str = "clip") -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the elements at flat indices, or the entries at indices along ``axis``.

        The mode "clip" replaces indices out of range by the nearest ones, and "wrap" counts on from the start.

        Raises:
            NotImplementedError: ``mode`` is "raise".
        """
        if mode == "raise":
            refuse(NotImplementedError, "For 'take', the mode 'raise' is not supported: should be 'clip' or 'wrap'")
        own = torch.as_tensor(indices)
        flat, place = (self.reshape(-1), 0) if axis is None else (self, axis % self.dim())
        length = flat.shape[place]
        bounded = own.remainder(length) if mode == "wrap" else own.clamp(0, length - 1)
        picked = flat.index_select(place, bounded.reshape(-1))
        return picked.reshape((*flat.shape[:place], *own.shape, *flat.shape[place + 1 :]))

    def median(self, axis: Any = -1, keepdims: bool = False, **named: Any) -> Any:  # type: ignore[override]
        """Return the medians along ``axis``, and their indices."""
        found = torch.median(self, named.pop("dim", axis), named.pop("keepdim", keepdims), **named)
        return found[0], found[1]

    def count_nonzero(  # type: ignore[override]  # MindSpore's names
        self, axis: Any = (), keep_dims: bool = False, dtype: Any = None, **named: Any
    ) -> Any:
        """Return the number of elements that are not zero, of all or along ``axis``, in int32."""
        found = along(torch.sum, self != 0, named.pop("dim", axis), keep_dims)
        return found.to(dtype or torch.int32)

    def index_fill(self, axis: int, index: Any, value: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a copy with one value in the entries at these indices along ``axis``."""
        return torch.index_fill(self, axis, torch.as_tensor(index).long(), value)

    def gather_elements(self, dim: int, index: Any) -> Any:
        """Return ``torch.gather``: the elements at these indices along ``dim``."""
        return torch.gather(self, dim, index.long())

    def inv(self) -> Any:
        """Return the reciprocal of each element, in the tensor's dtype."""
        return torch.reciprocal(self).to(self.dtype)

    def ptp(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the maximum minus the minimum, of all elements or along ``axis``."""
        return self.max(axis=axis, keepdims=keepdims) - self.min(axis=axis, keepdims=keepdims)

    def top_k(self, k: int, sorted: bool = True) -> Any:
        """Return the ``k`` greatest elements along the last axis, and their indices in int32."""
        return places(torch.topk(self, k, sorted=sorted))

    def resize(self, *new_shape: Any) -> Any:
        """Return a tensor of this shape with the first elements, and zeros if there are too few."""
        sizes = new_shape[0] if len(new_shape) == 1 and isinstance(new_shape[0], list | tuple) else new_shape
        wanted, flat = int(np.prod(sizes)), self.reshape(-1)[: int(np.prod(sizes))]
        return torch.nn.functional.pad(flat, (0, wanted - flat.numel())).reshape(tuple(sizes))
