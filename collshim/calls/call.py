"""The description of one rank's call, made before it is posted.

Validation, the comparison between ranks, deadlines and all error texts use this description.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from collshim.calls.collective import RECV, SEND, Collective, Shape

EAGER_BYTES = 4096
"""A send of at most this many bytes completes immediately; a larger one completes once its receive has been posted."""

TAGS = 2**30
"""Users' tags are below this number; the process transport's internal messages use this number and higher ones."""

_ROLE = {SEND: "to", RECV: "from"}


class Call(NamedTuple):
    """One rank's call.

    ``shape`` is the shape of this rank's tensor, or of each part if all parts have the same shape. None means that this
    rank has no tensor and accepts any shape. ``sends`` and ``expects`` have one shape per peer if the shapes are
    unequal; ``expects`` is ``()`` if parts of unequal shapes are expected and the shapes are not known yet.
    ``discovers`` says that the ranks exchange shapes and dtypes first, whether or not they check their calls.
    ``content`` says what the data represents if it is not one array of the caller: "object" for a pickled object, or
    "coalesced" for several arrays in one, followed by the properties that all ranks must share. ``nan`` describes the
    NaN found in the input of a reduction.
    """

    collective: Collective
    shape: Shape | None = None
    dtype: torch.dtype | None = None
    device: str = "any"
    reduce_op: str | None = None
    factor: float | None = None
    root: int | None = None
    sends: tuple[Shape, ...] | None = None
    expects: tuple[Shape, ...] | None = None
    needs_grad: bool = False
    discovers: bool = False
    tag: int = 0
    site: str = ""
    content: str = ""
    nan: str = ""

    @property
    def op(self) -> str:
        """The collective's name."""
        return self.collective.name

    @property
    def name(self) -> str:
        """The collective as its caller spells it, such as ``all_gather_object``."""
        return f"{self.op}_{self.content.partition(' ')[0]}" if self.content else self.op

    @property
    def is_ragged(self) -> bool:
        """Whether this rank sends or expects parts of unequal shapes."""
        return self.sends is not None or self.expects is not None

    @property
    def is_uniform(self) -> bool:
        """Whether all parts that this rank sends and expects have equal shapes, although they are listed one by one."""
        return bool(self.sends and self.expects) and len({*(self.sends or ()), *(self.expects or ())}) == 1

    def sent(self, peer: int) -> Shape | None:
        """Return the shape of the data that this rank sends to ``peer``."""
        return self.shape if self.sends is None else self.sends[peer]

    def expected(self, peer: int) -> Shape | None:
        """Return the shape that this rank expects from ``peer``; None accepts any."""
        if self.expects is None:
            return self.shape
        return self.expects[peer] if self.expects else None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self._details())})" + (f" at {self.site}" if self.site else "")

    def _details(self) -> list[str]:
        arrays = self.content.partition(" ")[2]
        details = [arrays] if arrays else [] if self.shape is None else [f"shape {self.shape}"]
        details += [] if self.sends is None else [f"sends {list(self.sends)}"]
        details += [f"expects {list(self.expects)}"] if self.expects else []
        details += [] if self.dtype is None else [name_of(self.dtype)]
        details += [] if self.reduce_op is None else [f"op {self.reduce_op}"]
        details += [] if self.factor is None else [f"factor {self.factor}"]
        return details + ([] if self.root is None else [f"{_ROLE.get(self.collective, 'root')} {self.root}"])


def flattened(call: Call) -> Call:
    """Return the call with flat data of the same number of elements, and no gradient for the ranks to agree on."""
    return call._replace(shape=None if call.shape is None else (math.prod(call.shape),), needs_grad=False)


def name_of(dtype: torch.dtype) -> str:
    """Return the dtype's name as all supported frameworks write it: ``float32``, not ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def in_the_world(ranks: Sequence[int]) -> str:
    """Return the suffix of an error text that names ranks of a group, if their numbers in the world are different."""
    if tuple(ranks) == tuple(range(len(ranks))):
        return ""
    return f"; these are ranks of the group; in the world they are ranks {', '.join(map(str, ranks))}"
