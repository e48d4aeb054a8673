"""One record per collective: which ranks have an input, which receive a result, and whether it reduces.

Validation, the comparison between ranks, allocation, gradients and every transport use these records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)  # one object for each collective, compared and hashed by identity
class Collective:
    """One collective, or one side of a message.

    Attributes:
        name: the name of ``Communicator``'s method, also used in error texts.
        gives: the input of a rank that has one: a single "tensor" for all ranks, "parts", one per rank, or "nothing".
        givers: the ranks with an input: "all" ranks, or only the "root".
        gets: the result of a rank that receives one: a single "tensor", "parts", one from each rank, or "nothing".
        receivers: the ranks with a result: "all" ranks, or only the "root".
        reduces: whether the ranks' data is combined element by element.
    """

    name: str
    gives: Literal["tensor", "parts", "nothing"]
    givers: Literal["all", "root"]
    gets: Literal["tensor", "parts", "nothing"]
    receivers: Literal["all", "root"]
    reduces: bool = False

    def gives_on(self, rank: int, root: int | None) -> bool:
        """Return whether ``rank`` has an input."""
        return self.gives != "nothing" and (self.givers == "all" or rank == root)

    def gets_on(self, rank: int, root: int | None) -> bool:
        """Return whether ``rank`` receives a result."""
        return self.gets != "nothing" and (self.receivers == "all" or rank == root)

    def getters(self, root: int | None, size: int) -> Sequence[int]:
        """Return the ranks that receive a result."""
        if self.gets == "nothing":
            return ()
        return range(size) if self.receivers == "all" or root is None else (root,)

    def result_shape(self, shape: Shape, size: int) -> Shape:
        """Return the shape of a result; ``shape`` is the shape of an input tensor, or of each part of an input."""
        return (size, *shape) if self.gets == "parts" else shape

    def input_shape(self, shape: Shape, size: int) -> Shape:
        """Return the shape of an input, rank-leading if it consists of parts of this shape."""
        return (size, *shape) if self.gives == "parts" else shape

    def routes(self, root: int, size: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (sender, receiver) whose data moves unchanged, so that both must have the same shape."""
        if self.reduces or self.gives == "nothing" or self.gets == "nothing":
            return ()
        givers = range(size) if self.givers == "all" else (root,)
        receivers = range(size) if self.receivers == "all" else (root,)
        return [(giver, receiver) for receiver in receivers for giver in givers]


ALL_REDUCE = Collective("all_reduce", "tensor", "all", "tensor", "all", reduces=True)
REDUCE = Collective("reduce", "tensor", "all", "tensor", "root", reduces=True)
BROADCAST = Collective("broadcast", "tensor", "root", "tensor", "all")
ALL_GATHER = Collective("all_gather", "tensor", "all", "parts", "all")
GATHER = Collective("gather", "tensor", "all", "parts", "root")
SCATTER = Collective("scatter", "parts", "root", "tensor", "all")
REDUCE_SCATTER = Collective("reduce_scatter", "parts", "all", "tensor", "all", reduces=True)
ALL_TO_ALL = Collective("all_to_all", "parts", "all", "parts", "all")
BARRIER = Collective("barrier", "nothing", "all", "nothing", "all")
SEND = Collective("send", "tensor", "all", "nothing", "all")
RECV = Collective("recv", "nothing", "all", "tensor", "all")

MESSAGES = (SEND, RECV)
"""The two sides of a message, which involves two ranks, not the whole group."""

_OF_A_GROUP = (ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, GATHER, SCATTER, REDUCE_SCATTER, ALL_TO_ALL, BARRIER)
COLLECTIVES = {record.name: record for record in (*_OF_A_GROUP, *MESSAGES)}
"""Every record by its name."""
