"""The standard calls of a collective: every shape, dtype, layout and root, derived from the function's spelling.

Their texts use an input array as ``x``, an output array as ``out``, an input list as ``parts``, and an output list as
``outs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from collshim.conformance.bindings import find
from collshim.conformance.bindings.arguments import role_of
from collshim.conformance.bindings.spelling import IN_PLACE, PART_PER_RANK, Spelling
from collshim.conformance.recorder.asked import SIZES, Asked, Inputs, Module, blank, part

SHAPES = {"0d": (), "1d": (4,), "2d": (2, 3), "3d": (2, 1, 3), "empty": (0, 3)}
WHOLE_SHAPES = {"2x3": (2, 3), "1": (1,), "3x1x2": (3, 1, 2)}
LAYOUTS = ("transposed", "strided")
_TOWARDS = {"reduce": "to", "gather": "to", "broadcast": "from", "scatter": "from"}


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The standard calls of one function; sizes are sizes of worlds.

    Attributes:
        shapes, sizes: shapes of arrays by name, and the sizes for them.
        dtypes: the dtypes; None for NumPy's that the spelling admits.
        dtype_sizes, dtype_shape, dtype_root: the sizes, shape and root of the calls with each dtype.
        layout_sizes: the sizes for each layout.
        roots: the roots; each is used in every world that has it.
        default_root: whether calls that do not test the root omit it instead of passing rank 0.
        group: the argument for the group, after the others.
    """

    shapes: Mapping[str, Sequence[int]] = field(default_factory=lambda: SHAPES)
    sizes: Sequence[int] = SIZES
    dtypes: Sequence[str] | None = None
    dtype_sizes: Sequence[int] = (2, 3)
    dtype_shape: Sequence[int] = (3,)
    dtype_root: int = 0
    layout_sizes: Sequence[int] = ()
    roots: Iterable[int] = ()
    default_root: bool = False
    group: tuple[str, ...] = ()


def swept(module: Module, sweeps: Mapping[str, Sweep]) -> list[Asked]:
    """Return the calls of functions of the module."""
    found: list[Asked] = []
    for name, sweep in sweeps.items():
        spelling = find(module.path + name)
        assert isinstance(spelling, Spelling)
        for what, sizes, root, arrays in _enumerate(sweep, spelling):
            arguments = ", ".join((*_arguments(spelling, root), *sweep.group))
            found += module(name, what, arguments, inputs_of(spelling, **arrays), sizes)
    return found


def _enumerate(sweep: Sweep, spelling: Spelling) -> Iterator[tuple[str, Sequence[int], int | None, dict[str, Any]]]:
    """Yield the special feature, the sizes of worlds, the root if it is passed, and the properties of the arrays."""
    usual = None if sweep.default_root else 0
    for name, shape in sweep.shapes.items():
        yield name, sweep.sizes, usual, {"shape": shape}
    admitted = [dtype for dtype in spelling.admits.dtypes if dtype != "bfloat16"]
    for dtype in admitted if sweep.dtypes is None else sweep.dtypes:
        yield dtype, sweep.dtype_sizes, sweep.dtype_root or usual, {"shape": sweep.dtype_shape, "dtype": dtype}
    for layout in LAYOUTS:
        yield layout, sweep.layout_sizes, usual, {"layout": layout}
    for root in sweep.roots:
        yield f"{_TOWARDS[spelling.collective]} {root}", range(root + 1, SIZES[-1] + 1), root, {}


def _arguments(spelling: Spelling, root: int | None) -> Iterator[str]:
    for name, role in spelling.takes.items():
        if name in spelling.arrays:
            written = name == spelling.result and spelling.collective not in IN_PLACE
            listed = "list" in role
            variable = ("outs" if listed else "out") if written else ("parts" if listed else "x")
            yield f"{variable} if rank == {root or 0} else None" if name in spelling.only_root else variable
        elif "root" in role_of(role) and root is not None:
            yield f"{name}={root}" if role_of(role) == "optional root" else str(root)


def inputs_of(
    spelling: Spelling, shape: Sequence[int] = (2, 3), dtype: str = "float32", **more: Any
) -> Callable[[int, int], Inputs]:
    """Return each rank's inputs, for parts of this shape; ``more`` applies to input arrays, as in ``asked.part``."""
    is_list, collective = spelling.arrangement == "list", spelling.collective

    def given(rank: int, size: int) -> Inputs:
        if collective not in PART_PER_RANK:
            return {"x": part(rank, shape, dtype, **more)}
        if not is_list:
            return {"x": part(rank, (size * shape[0], *shape[1:]), dtype, **more)}
        return {"parts": [part(rank, shape, dtype, start=1 + 40 * receiver, **more) for receiver in range(size)]}

    def written(rank: int, size: int) -> Inputs:
        if not spelling.is_written or collective in IN_PLACE:
            return {}
        if collective in ("scatter", "reduce_scatter"):
            return {"out": blank(shape, dtype)}
        if is_list:
            return {"outs": [blank(shape, dtype) for _ in range(size)]}
        return {"out": blank((size * shape[0], *shape[1:]), dtype)}

    return lambda rank, size: {**given(rank, size), **written(rank, size)}
