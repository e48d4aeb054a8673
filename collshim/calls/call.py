"""What one rank asks of a collective, described before it is posted.

Validation, the check between ranks, deadlines and every error text read this one description.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from collshim.calls.collective import RECV, SEND, Collective, Shape

EAGER_BYTES = 4096
"""A send of at most this many bytes is complete at once; a larger one when its receive has been posted."""

TAGS = 2**30
"""Users' tags are below; the numbers of the process transport's own messages start there."""

_ROLE = {SEND: "to", RECV: "from"}


class Call(NamedTuple):
    """One rank's call.

    ``shape`` is the shape of this rank's tensor, or of each part where every part has the same; None means that this
    rank has none of its own and takes what it gets. ``sends`` and ``expects`` hold one shape per peer where they are
    unequal; ``expects`` is ``()`` where unequal parts are awaited whose shapes are not known yet. ``discovers`` says
    that the ranks exchange shapes and dtypes first, whether they check their calls or not. ``content`` says what
    the data stands for where it is no array of the caller's: "object" for a pickled one, "coalesced" for several
    arrays in one, with what the ranks must have alike. ``nan`` describes the NaN found in what is reduced.
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
        """The collective as its caller spells it: ``all_gather_object``, say."""
        return f"{self.op}_{self.content.partition(' ')[0]}" if self.content else self.op

    @property
    def is_ragged(self) -> bool:
        """Whether this rank gives, or awaits, parts of unequal shapes."""
        return self.sends is not None or self.expects is not None

    @property
    def is_uniform(self) -> bool:
        """Whether this rank gives and awaits parts one by one that have one shape all the same."""
        return bool(self.sends and self.expects) and len({*(self.sends or ()), *(self.expects or ())}) == 1

    def sent(self, peer: int) -> Shape | None:
        """The shape of what this rank gives to ``peer``."""
        return self.shape if self.sends is None else self.sends[peer]

    def expected(self, peer: int) -> Shape | None:
        """The shape that this rank awaits from ``peer``; None takes any."""
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


def name_of(dtype: torch.dtype) -> str:
    """The dtype's name as every framework here writes it: ``float32``, not ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def in_the_world(ranks: Sequence[int]) -> str:
    """What follows a text that names ranks of a group, where the world numbers them otherwise."""
    if tuple(ranks) == tuple(range(len(ranks))):
        return ""
    return f"; these are ranks of the group, in the world they are ranks {', '.join(map(str, ranks))}"
