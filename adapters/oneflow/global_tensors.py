"""Global tensors, ``placement``, ``sbp`` and ``nn.Graph``: there for what imports them, refused where they are used.

OneFlow spreads a global tensor over the ranks by itself. collshim has no counterpart: a program says which rank holds
what, with local tensors and ``flow.comm``. A ``placement`` is a record of ranks and an ``sbp`` a description, which may
be made, compared and passed around; what would spread a tensor by them raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch

from collshim import world
from collshim.adapting import devices
from collshim.errors import ArgumentValueError, CollshimError, also

INSTEAD = (
    "collshim has OneFlow's local tensors alone: keep each rank's part in a local tensor and call flow.comm, or wrap "
    "the module in flow.nn.parallel.DistributedDataParallel"
)


def refuse(what: str) -> Callable[..., NoReturn]:
    """A function that raises, with what to do instead."""

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise also(CollshimError, RuntimeError)(f"{what} is for global tensors; {INSTEAD}{world.place()}")

    return refused


def refused_attribute(name: str) -> property:
    """A property of local tensors that raises RuntimeError, as OneFlow 0.9.0's do."""
    return property(refuse(f"Tensor.{name}"))


class placement:
    """Which ranks of which kind of device: ``flow.placement("cuda", ranks=[0, 1])``.

    Attributes:
        type, device_type: "cpu" or "cuda".
        ranks: an array of int64, in as many dimensions as were given.
        hierarchy: its shape.

    Raises:
        RuntimeError: another type, "cuda" where there is none, or what are no ranks.
    """

    def __init__(self, type: str | None = None, ranks: Any = None, **older: Any) -> None:
        kind = older.pop("device_type", type)
        given = older.pop("device_ids", ranks)
        hierarchy = older.pop("hierarchy", None)
        if kind not in ("cpu", "cuda") or older:
            raise also(ArgumentValueError, RuntimeError)(
                f"placement's type is {kind!r} (and {sorted(older)}): Expected one of cpu, cuda device type"
            )
        devices.resolve(kind, RuntimeError)
        if isinstance(given, dict):  # the older form: ranks by machine
            given = [rank for of_one in given.values() for rank in np.atleast_1d(of_one)]
        array = np.atleast_1d(np.asarray(given))
        if array.dtype.kind not in "iu" or array.size == 0:
            raise also(ArgumentValueError, RuntimeError)(
                f"placement's ranks are {given!r}: placement ranks shoule be an array of long int"
            )
        self.type: str = kind
        self.ranks = array.astype(np.int64) if hierarchy is None else array.astype(np.int64).reshape(hierarchy)

    @property
    def device_type(self) -> str:
        """The kind of device."""
        return self.type

    @property
    def hierarchy(self) -> torch.Size:
        """The shape of ``ranks``."""
        return torch.Size(self.ranks.shape)

    @classmethod
    def all(cls, type: str) -> placement:
        """All ranks."""
        return cls(type, list(range(world.current().size)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, placement) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f'oneflow.placement(type="{self.type}", ranks={self.ranks.tolist()})'


class sbp:
    """How a global tensor lies on its ranks: split along a dimension, alike on all, or as parts of a sum."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self) -> sbp:
        """Itself: OneFlow takes ``flow.sbp.broadcast()`` too."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, sbp) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"oneflow.sbp.{self._text}"


def all_device_placement(device_type: str) -> placement:
    """The placement of every rank: ``flow.env.all_device_placement("cuda")``."""
    return placement.all(device_type)
