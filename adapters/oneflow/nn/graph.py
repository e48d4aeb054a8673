"""``flow.nn.Graph``: may be subclassed, and cannot be made."""

from __future__ import annotations

from typing import Any, NoReturn

from collshim import world
from collshim.errors import CollshimError, also


class Graph:
    """OneFlow's static graphs. A subclass can be defined; an object of it is refused."""

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise also(CollshimError, NotImplementedError)(
            f"{type(self).__name__} is an nn.Graph, which collshim does not compile: call the module and the loss in a "
            f"loop, with flow.nn.parallel.DistributedDataParallel between ranks{world.place()}"
        )
