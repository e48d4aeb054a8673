"""MegEngine: ``megengine.functional.distributed``, which returns new tensors and supports axes.

Observed with megengine 1.13.0. A group is a ``Group``, in the order of its list, and its first rank is the root. Axes
are not negative. Arrays are not empty. A 0-d array is gathered as (size,) and cannot be cut. A world has at least two
ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding, Framework, Refused, refuses
from collshim.conformance.bindings.differentiation import Weights, loss_of, outputs
from collshim.conformance.bindings.messages import Half, Ring
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.spelling import Spelling

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
    """Use a ``GradManager``, through which a rank without a result joins the others' backward."""
    manager = context.function("megengine.autodiff.GradManager")()
    if inputs:
        manager.attach(list(inputs))
    with manager:
        returned = forward()
        loss = loss_of(outputs(returned), weigh())
        manager.backward(*([] if loss is None else [loss]))
    return returned


_NEEDED = tuple(f"megengine.distributed.{name}" for name in ("is_distributed", "init_process_group", "new_group"))
FRAMEWORK = Framework("megengine", _enter, _group, _differentiate, needs=_NEEDED)
_MESSAGES = Admits(dtypes=("int8", "uint8", "int32", "float16", "float32"), empty=False, least_size=2)
_ANY = replace(_MESSAGES, groups="ordered", roots=False, gradient=True)
_ROWS = replace(_ANY, least_ndim=1)
_NO_ARRAY = refuses(invalid.NO_ARRAY, "AttributeError")
_OUTSIDE = Refused(changes={"axis": 2}, error="IndexError")
_NOT_JOINED = Refused(changes={"axis": 2}, error="AssertionError", match="your concat_axis exceeds")
_INDIVISIBLE = Refused(
    changes={"size": 2, "lengths": ((1, 2), (1, 2))},
    error="AssertionError",
    match="can't devided by group size",
)


def _spelled(name: str, collective: str, takes: Mapping[str, str] | None = None, **more: Any) -> Spelling:
    parameters = {**(takes or {"inp": "array"}), "group": "group", "device": "MegEngine's device"}
    common: dict[str, Any] = {"framework": FRAMEWORK, "admits": _ANY, "arrangement": "joined"}
    return Spelling(path=_PATH + name, collective=collective, takes=parameters, **common | more)


def _reduction(op: str, **more: Any) -> Spelling:
    admits = replace(_ANY, reduce_ops=(op,))
    return _spelled(f"all_reduce_{op}", "all_reduce", admits=admits, refused=(_NO_ARRAY,), **more)


_BROADCAST = _spelled(
    "broadcast",
    "broadcast",
    {"inp": "array@first"},
    example="""\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.broadcast(x)
""",
    notes=(
        "A rank that is not the root may pass None.",
        "To make a different rank the root, pass a group that begins with it.",
    ),
)
_SCATTER = _spelled(
    "scatter",
    "scatter",
    {"inp": "array to divide@first", "axis": "axis to cut@first"},
    admits=replace(_ROWS, split_axes=True),
    example="""\
x = torch.tensor([1, 2, 3, 4]) + 10 * rank
F.distributed.scatter(x)
""",
    notes=("It takes one tensor, which is cut along `axis`; a rank that is not the root may pass None.",),
)


def _off_the_root(spelling: Spelling) -> Spelling:
    """Let the other ranks pass None."""
    kinds = replace(spelling.admits, kinds=("torch",))
    return replace(spelling, form="None off the root", admits=kinds, only_root=("inp",))


_COLLECTIVES = (
    _spelled(
        "all_gather",
        "all_gather",
        {"inp": "array", "axis": "axis"},
        admits=replace(_ANY, axes=True),
        refused=(_OUTSIDE, _NO_ARRAY),
        example="""\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.all_gather(x)
""",
        notes=("`axis` must not be negative; the parts are in the order of the group's list.",),
    ),
    _reduction(
        "sum",
        example="""\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.all_reduce_sum(x)
""",
        notes=(
            "There is one function for each reduction. If ranks tie in `_max` or `_min`, each has the full gradient.",
        ),
    ),
    _reduction("max"),
    _reduction("min"),
    _spelled(
        "all_to_all",
        "all_to_all",
        {"inp": "array to divide", "split_axis": "axis to cut", "concat_axis": "axis"},
        admits=replace(_ROWS, axes=True, split_axes=True),
        refused=(_INDIVISIBLE,),
        example="""\
x = torch.tensor([1, 2, 3, 4]) + 10 * rank
F.distributed.all_to_all(x)
""",
        notes=(
            (
                "It takes one tensor and returns one tensor: `split_axis` becomes `n` times shorter, `concat_axis` "
                "`n` times longer. Both default to 0."
            ),
        ),
    ),
    _spelled(
        "reduce_sum",
        "reduce",
        refused=(_NO_ARRAY,),
        example="""\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.reduce_sum(x)
""",
        notes=("To make a different rank the root, pass a group that begins with it: `dist.new_group([1, 0])`.",),
    ),
    _BROADCAST,
    _off_the_root(_BROADCAST),
    _spelled(
        "gather",
        "gather",
        {"inp": "array", "axis": "axis"},
        admits=replace(_ROWS, axes=True),
        refused=(_NOT_JOINED,),
        example="""\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.gather(x)
""",
        notes=("The group's first rank receives the tensors, joined along `axis`; the others, None.",),
    ),
    _SCATTER,
    _off_the_root(_SCATTER),
    _spelled(
        "reduce_scatter_sum",
        "reduce_scatter",
        {"inp": "array to divide", "axis": "axis to cut"},
        admits=replace(_ROWS, split_axes=True),
        refused=(_INDIVISIBLE,),
        example="""\
x = torch.tensor([1, 2, 3, 4]) + 10 * rank
F.distributed.reduce_scatter_sum(x)
""",
        notes=("It takes one tensor, which is cut along `axis`; `axis` must not be negative.",),
    ),
)


def _received(received: Any, source: int) -> Tree:
    return {"send": None, "recv": received.reshape(1) if received.ndim == 0 else received}


SPELLINGS: tuple[Binding, ...] = (
    *_COLLECTIVES,
    Barrier(
        framework=FRAMEWORK,
        path="megengine.distributed.group_barrier",
        takes={"group": "group"},
        admits=_ANY,
        example="""\
dist.group_barrier()
""",
    ),
    Ring(
        framework=FRAMEWORK,
        path=_PATH + "remote_send",
        admits=_MESSAGES,
        sends=Half("remote_send", {"inp": "array", "dest_rank": "rank"}),
        receives=Half("remote_recv", {"src_rank": "rank", "inp": "kind of array"}),
        returns=_received,
        fills=False,
        example="""\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.remote_send(x, 1) if rank == 0 else F.distributed.remote_recv(0)
""",
        notes=(
            "`remote_send` returns None at once; `remote_recv` learns shape and dtype from the message.",
            "The receiver sends the gradient back to the sender, so both ranks must call `GradManager.backward`.",
        ),
    ),
)
