"""``flow.nn.Graph``: can be subclassed, but not instantiated."""

from __future__ import annotations

from typing import Any, NoReturn

from collshim import world
from collshim.errors import CollshimError, also


class Graph:
    """OneFlow's static graph. A subclass can be defined; an instance of it is refused."""

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise also(CollshimError, NotImplementedError)(
            f"{type(self).__name__} is an nn.Graph, which collshim does not compile: call the module and the loss in a "
            f"loop, with flow.nn.parallel.DistributedDataParallel between ranks{world.place()}"
        )
