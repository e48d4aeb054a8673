"""A call as data: its text, and each rank's inputs.

    >>> asked = Asked(
    ...     "comm.all_reduce/doc",
    ...     "flow.comm.all_reduce(x)",
    ...     ("oneflow.comm.all_reduce",),
    ...     2,
    ...     ({"x": given([1, 2])}, {"x": given([3, 4])}),
    ... )

The text is Python. It uses the framework's modules under the names that its dialect defines, ``rank``, ``size``
and the inputs; the value of its last expression is what the call returned. The same text runs on the real framework
and on collshim's adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.recorder.trees import WIDER, Tree, given

Inputs = Mapping[str, Tree]
Calls: TypeAlias = Mapping[str, str | tuple[str, str]]
"""A call's arguments or text, optionally with a part of the exception's text, by the special feature of the call."""

SIZES = (1, 2, 3, 4)


@dataclass(frozen=True)
class Asked:
    """One call.

    Attributes:
        id: the function, a slash, and the call's special feature; unique together with the size.
        call: the text.
        api: dotted paths of the functions that the text needs, the tested one first.
        size: the number of ranks, or replicas, in the world.
        inputs: the variables of the text, for each rank; one entry if all ranks have the same.
        match: the part of an exception's text that users rely on.
        world: the kind of world, if a framework has several.
        alone: whether the call may leave its world unusable, so that it runs in a separate one.
    """

    id: str
    call: str
    api: tuple[str, ...]
    size: int
    inputs: tuple[Inputs, ...]
    match: str = ""
    world: str = ""
    alone: bool = False

    @property
    def processes(self) -> int:
        """The number of ranks that answer: one if all replicas are in one process, or if nothing is distributed."""
        return 1 if self.world in ("mirrored", "one device", "default", "bare") else self.size

    def of_rank(self, rank: int) -> Inputs:
        """Return the inputs of rank ``rank``."""
        return self.inputs[rank if len(self.inputs) > 1 else 0]

    def as_json(self) -> dict[str, Any]:
        """Return the call as JSON, without fields at their defaults."""
        same = all(inputs == self.inputs[0] for inputs in self.inputs)
        plain = {"id": self.id, "size": self.size, "world": self.world, "call": self.call, "api": list(self.api)}
        more = {"match": self.match, "alone": self.alone, "in": list(self.inputs[:1] if same else self.inputs)}
        return {name: value for name, value in {**plain, **more}.items() if value}

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Asked:
        """Return the call from the JSON of ``as_json``."""
        inputs = tuple(line.get("in", [{}]))
        more = {name: line[name] for name in ("match", "world", "alone") if name in line}
        return cls(line["id"], line["call"], tuple(line["api"]), line["size"], inputs, **more)


def ask(
    id: str,
    api: str | Sequence[str],
    call: str,
    inputs: Callable[[int, int], Inputs] | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    match: str = "",
    world: str = "",
    alone: bool = False,
) -> list[Asked]:
    """Return the same call in worlds of several sizes; ``inputs(rank, size)`` returns a rank's inputs."""
    paths = (api,) if isinstance(api, str) else tuple(api)
    by_size = {size: tuple(inputs(rank, size) for rank in range(size)) if inputs else ({},) for size in sizes}
    return [Asked(id, call, paths, size, by_size[size], match, world, alone) for size in sizes]


class Module(NamedTuple):
    """The module of the functions: its path, its name in texts, and the prefix of ids; each ends with a dot."""

    path: str
    alias: str
    ids: str = ""

    def __call__(
        self,
        name: str,
        what: str,
        arguments: str = "",
        inputs: Callable[[int, int], Inputs] | None = None,
        sizes: Sequence[int] = SIZES,
        match: str = "",
        *,
        text: str = "{}",
        also: Sequence[str] = (),
        **more: Any,
    ) -> list[Asked]:
        """Call ``ask`` for one function: ``text`` has ``{}`` for its call, and also needs the functions ``also``."""
        call = text.replace("{}", f"{self.alias}{name}({arguments})")
        paths = (self.path + name, *also)
        return ask(f"{self.ids}{name}/{what}", paths, call, inputs, sizes=sizes, match=match, **more)

    def each(
        self,
        name: str,
        calls: Calls,
        inputs: Callable[[int, int], Inputs] | None = None,
        sizes: Sequence[int] = SIZES,
        **more: Any,
    ) -> list[Asked]:
        """Return calls that differ in their arguments."""
        found: list[Asked] = []
        for what, call in calls.items():
            arguments, match = (call, "") if isinstance(call, str) else call
            found += self(name, what, arguments, inputs, sizes, match, **more)
        return found


def joined(*families: Callable[[], Iterable[list[Asked]]]) -> list[Asked]:
    """Return the calls of every family, in order."""
    return [asked for family in families for several in family() for asked in several]


def ramp(shape: Sequence[int], dtype: str = "float32", start: float = 0) -> NDArray[Any]:
    """Return values that differ from place to place, counting from ``start``, exact in every dtype."""
    count = int(np.prod(tuple(shape), dtype=np.int64))
    if dtype == "bool":
        return np.asarray((np.arange(count) + int(start)) % 3 == 0).reshape(shape)
    values = (np.arange(count) + start).reshape(shape)
    typed = values.astype(WIDER.get(dtype, dtype))
    return np.asarray(typed * np.array(1 + 0.5j, dtype)) if dtype.startswith("complex") else typed


def part(rank: int, shape: Sequence[int] = (2, 3), dtype: str = "float32", *, start: float = 1, **more: Any) -> Tree:
    """Return rank ``rank``'s array: it counts from ``start``, plus 10 for each rank."""
    return given(ramp(shape, dtype, start + 10 * rank).astype(WIDER.get(dtype, dtype)), dtype, **more)


def blank(shape: Sequence[int] = (2, 3), dtype: str = "float32", fill: float = 99, **more: Any) -> Tree:
    """Return an array to write into."""
    value = dtype == "bool" or fill
    return given(np.full(tuple(shape), value, WIDER.get(dtype, dtype)), dtype, **more)
