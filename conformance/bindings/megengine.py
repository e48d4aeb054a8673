"""MegEngine: ``megengine.functional.distributed``, which returns new tensors and knows axes.

From megengine 1.13.0. A group is a ``Group``, in the order of its list, and its first rank is the root. Axes are not
negative; an array has elements; a 0-d array is gathered as (size,) and cannot be cut; there is no world of one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding, Framework, Refused, refuses
from collshim.conformance.bindings.differentiation import Weights, loss_of, outputs
from collshim.conformance.bindings.messages import Neighbours, Ring
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.results import AllGatherJoined, AllReduced, AllToAllAxes, Asked
from collshim.conformance.bindings.rooted_results import (
    Broadcasted,
    GatheredJoined,
    Reduced,
    ReduceScattered,
    ScatteredJoined,
)

_DTYPES = ("int8", "uint8", "int32", "float16", "float32")
_PATH = "megengine.functional.distributed."


def _enter(context: RankContext) -> None:
    if not context.function("megengine.distributed.is_distributed")():
        init = context.function("megengine.distributed.init_process_group")
        init(context.address, context.port, context.size, context.rank, context.rank)


def _group(context: RankContext, case: Any) -> Any:
    if case.group is None or context.rank not in case.group:
        return None
    new_group = context.function("megengine.distributed.new_group")
    return context.once(("megengine", case.group), lambda: new_group(list(case.group)))


def _differentiate(
    context: RankContext, inputs: Sequence[Any], forward: Callable[[], Tree], weigh: Callable[[], Weights]
) -> Tree:
    """By a ``GradManager``, through which a rank without a result joins the others' backward."""
    manager = context.function("megengine.autodiff.GradManager")()
    if inputs:
        manager.attach(list(inputs))
    with manager:
        returned = forward()
        loss = loss_of(outputs(returned), weigh())
        manager.backward(*([] if loss is None else [loss]))
    return returned


def _within(group: Any) -> Mapping[str, Any]:
    return {} if group is None else {"group": group}


def _plain(asked: Asked) -> Tree:
    return asked.function(asked.given, **_within(asked.group))


def _along(asked: Asked) -> Tree:
    return asked.function(asked.given, axis=asked.case.axis, **_within(asked.group))


def _cut(asked: Asked) -> Tree:
    return asked.function(asked.given, axis=asked.case.split_axis, **_within(asked.group))


def _exchange(asked: Asked) -> Tree:
    axes = {"split_axis": asked.case.split_axis, "concat_axis": asked.case.axis}
    return asked.function(asked.given, **axes, **_within(asked.group))


def _remote(asked: Neighbours) -> Tree:
    send, recv = asked.place.function(_PATH + "remote_send"), asked.place.function(_PATH + "remote_recv")
    return asked.in_turn(lambda: send(asked.given, asked.to), lambda: recv(asked.source, inp=asked.buffer))


def _remote_answer(received: Any, source: int) -> Tree:
    return {"send": None, "recv": received.reshape(1) if received.ndim == 0 else received}


_NEEDED = tuple(f"megengine.distributed.{name}" for name in ("is_distributed", "init_process_group", "new_group"))
FRAMEWORK = Framework("megengine", _enter, _group, _differentiate, _NEEDED)
_OUTSIDE = Refused(changes={"axis": 2}, error="IndexError")
_NOT_JOINED = Refused(changes={"axis": 2}, error="AssertionError", match="your concat_axis exceeds")
_INDIVISIBLE = Refused(
    changes={"size": 2, "lengths": ((1, 2), (1, 2))},
    error="AssertionError",
    match="can't devided by group size",
)


_NO_ARRAY = refuses(invalid.NO_ARRAY, "AttributeError")


def _admits(**more: Any) -> Admits:
    return Admits(dtypes=_DTYPES, groups="ordered", empty=False, roots=False, least_size=2, gradient=True, **more)


def _bound(binding: Any, name: str, speak: Callable[..., Tree], form: str = "", **more: Any) -> Binding:
    return binding(framework=FRAMEWORK, path=_PATH + name, speak=speak, form=form, **more)  # type: ignore[no-any-return]


def _reduction(op: str) -> Binding:
    return _bound(AllReduced, f"all_reduce_{op}", _plain, admits=_admits(reduce_ops=(op,)), refused=(_NO_ARRAY,))


_JOINED = _admits(axes=True)
_JOINED_ROWS = _admits(axes=True, least_ndim=1)
_CUT = _admits(split_axes=True, least_ndim=1)
_CUT_AND_JOINED = _admits(axes=True, split_axes=True, least_ndim=1)

BINDINGS: tuple[Binding, ...] = (
    _bound(AllGatherJoined, "all_gather", _along, admits=_JOINED, refused=(_OUTSIDE, _NO_ARRAY)),
    *map(_reduction, ("sum", "max", "min")),
    _bound(AllToAllAxes, "all_to_all", _exchange, admits=_CUT_AND_JOINED, refused=(_INDIVISIBLE,)),
    _bound(Reduced, "reduce_sum", _plain, admits=_admits(), refused=(_NO_ARRAY,)),
    _bound(Broadcasted, "broadcast", _plain, admits=_admits()),
    _bound(
        Broadcasted,
        "broadcast",
        _plain,
        form="None off the root",
        admits=_admits(kinds=("torch",)),
        withheld=True,
    ),
    _bound(GatheredJoined, "gather", _along, admits=_JOINED_ROWS, refused=(_NOT_JOINED,)),
    _bound(ScatteredJoined, "scatter", _cut, admits=_CUT),
    _bound(
        ScatteredJoined,
        "scatter",
        _cut,
        form="None off the root",
        admits=_admits(split_axes=True, least_ndim=1, kinds=("torch",)),
        withheld=True,
    ),
    _bound(ReduceScattered, "reduce_scatter_sum", _cut, admits=_CUT, refused=(_INDIVISIBLE,)),
    Barrier(framework=FRAMEWORK, path="megengine.distributed.group_barrier", with_group=_within, admits=_admits()),
    Ring(
        framework=FRAMEWORK,
        path=_PATH + "remote_send",
        admits=Admits(dtypes=_DTYPES, empty=False, least_size=2),
        speak=_remote,
        returns=_remote_answer,
        fills=False,
    ),
)
