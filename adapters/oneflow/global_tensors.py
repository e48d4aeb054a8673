"""``placement`` and ``sbp``, which describe how global tensors are spread; errors for attributes that only they have.

Global tensors themselves are in ``framework.global_tensor``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from collshim import world
from collshim.adapting import devices
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, CollshimError, also

INSTEAD = (
    "make one with to_global, or keep each rank's part in a local tensor and call flow.comm, or wrap the module in "
    "flow.nn.parallel.DistributedDataParallel"
)


def refuse(what: str) -> Callable[..., NoReturn]:
    """Return a function that raises an error with advice."""

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise also(CollshimError, RuntimeError)(f"{what} is for global tensors; {INSTEAD}{world.place()}")

    return refused


def refused_attribute(name: str) -> property:
    """Return a property that raises RuntimeError, as OneFlow 0.9.0's properties of local tensors do."""
    return property(refuse(f"Tensor.{name}"))


def _array_of(ranks: Any, hierarchy: Any) -> NDArray[np.int64]:
    """Return a placement's ranks as an array, in the shape of ``hierarchy`` if it is not None."""
    try:
        array = np.atleast_1d(np.asarray(ranks))
    except ValueError:  # rows of unequal length
        array = np.empty(0)
    if array.dtype.kind not in "iu" or array.size == 0 or array.min() < 0 or isinstance(ranks, torch.Tensor):
        raise also(ArgumentValueError, RuntimeError)(
            f"placement's ranks are {ranks!r}: placement ranks shoule be an array of long int"
        )
    if len(np.unique(array)) < array.size:
        raise also(ArgumentValueError, RuntimeError)(f"placement's ranks are {ranks!r}: should contain each rank once")
    if hierarchy is not None and math.prod(hierarchy) != array.size:
        text = f"placement's hierarchy is {tuple(hierarchy)}: should have room for {array.size} ranks"
        raise also(ArgumentValueError, RuntimeError)(text)
    numbers: NDArray[np.int64] = array.astype(np.int64)
    return numbers if hierarchy is None else numbers.reshape(hierarchy)


class placement:
    """A set of ranks on one type of device: ``flow.placement("cuda", ranks=[0, 1])``.

    Attributes:
        type, device_type: the type of device, "cpu" or "cuda".
        ranks: the ranks, as an int64 array with the shape of the argument.
        hierarchy: the shape of ``ranks``.

    Raises:
        TypeError: ``type`` is not a str.
        RuntimeError: ``type`` is neither of these, or is "cuda" on a machine without CUDA; ``ranks`` are not integers
            from 0 in lists or an array, do not form rows of equal length, or have a rank twice (OneFlow aborts then).
    """

    def __init__(self, type: str | None = None, ranks: Any = None, **older: Any) -> None:
        kind = older.pop("device_type", type)
        given = older.pop("device_ids", ranks)
        hierarchy = older.pop("hierarchy", None)
        if not isinstance(kind, str):
            raise ArgumentTypeError(f"placement's type is {kind!r}, should be a str")
        if kind not in ("cpu", "cuda") or older:
            raise also(ArgumentValueError, RuntimeError)(
                f"placement's type is {kind!r} (and {sorted(older)}): Expected one of cpu, cuda device type"
            )
        devices.resolve(kind, RuntimeError)
        if isinstance(given, dict):  # the older form: ranks by machine
            given = [rank for of_one in given.values() for rank in np.atleast_1d(of_one)]
        self.type: str = kind
        self.ranks = _array_of(given, hierarchy)

    @property
    def device_type(self) -> str:
        """The type of device."""
        return self.type

    @property
    def hierarchy(self) -> torch.Size:
        """The shape of ``ranks``."""
        return torch.Size(self.ranks.shape)

    @classmethod
    def all(cls, type: str) -> placement:
        """Return the placement of all ranks."""
        return cls(type, list(range(world.current().size)))

    def is_at(self, other: placement) -> bool:
        """Return whether it has another placement's ranks, in the same order and dimensions."""
        return np.array_equal(self.ranks, other.ranks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, placement) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f'oneflow.placement(type="{self.type}", ranks={self.ranks.tolist()})'


class sbp:
    """The layout of a global tensor on its ranks: split along a dimension, equal on all ranks, or parts of a sum."""

    def __init__(self, text: str, layout: int | str | None = None) -> None:
        self._text = text
        self.layout: int | str = text if layout is None else layout

    @classmethod
    def of(cls, layout: int | str) -> sbp:
        """Return the sbp for a layout: the axis of a split, "broadcast" or "partial_sum"."""
        return cls(f"split(dim={layout})", layout) if isinstance(layout, int) else cls(layout)

    def __call__(self) -> sbp:
        """Return the object itself, since OneFlow also allows ``flow.sbp.broadcast()``."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, sbp) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"oneflow.sbp.{self._text}"


def layouts_of(spread: Any, place: placement, kind: type[Exception] = RuntimeError) -> tuple[int | str, ...]:
    """Return the layouts of an ``sbp``, or of a list or tuple with one for each dimension of ranks.

    Raises:
        TypeError: it is another value, or ``place`` is no placement. ``kind``: the placement has another number of
            dimensions.
    """
    if not isinstance(place, placement):
        raise also(ArgumentError, TypeError)(f"Invalid parameter placement with type {type(place)}{world.place()}")
    each = list(spread) if isinstance(spread, list | tuple) else [spread]
    if not all(isinstance(one, sbp) for one in each):
        raise also(ArgumentError, TypeError)(f"Invalid parameter sbp with type {type(spread)}{world.place()}")
    if len(each) != place.ranks.ndim:
        text = (
            f"sbp is {spread} on {place}: should be one for each dimension of ranks ({len(each)} vs {place.ranks.ndim})"
        )
        raise also(ArgumentError, kind)(text + world.place())
    return tuple(one.layout for one in each)


def all_device_placement(device_type: str) -> placement:
    """Return the placement of every rank: ``flow.env.all_device_placement("cuda")``."""
    return placement.all(device_type)
