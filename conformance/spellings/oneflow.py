"""OneFlow: ``oneflow.comm``, which supports only the world and only sums, and returns None.

Observed with oneflow 0.9.0 on CPU. ``all_gather`` and ``gather`` put new tensors into the list, ``gather`` on every
rank that passes one. ``reduce_scatter`` rebinds its output to other memory. ``all_to_all`` and ``scatter`` keep the
passed tensors, but the one that comes from this rank itself is rebound to the memory of its input.
``all_gather_into_tensor`` and ``reduce_scatter_tensor`` take any shapes whose numbers of elements match. Lists hold no
0-d tensors, except for ``scatter``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings import invalid
from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding, Framework, Refused, refuses
from collshim.conformance.bindings.messages import Half, Ring
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.spelling import Spelling

_SUMMED = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")  # float16 ends the process
_GATHERED = ("bool", "uint8", "int8", "int32", "int64", *FLOATS)
_COMM = "oneflow.comm."


def _enter(context: RankContext) -> None:
    """Import oneflow, which joins the world."""
    context.function("oneflow")


def _group(context: RankContext, case: Any) -> None:
    """Return None: OneFlow has no groups."""


FRAMEWORK = Framework("oneflow", _enter, _group)
_GATHER = Admits(dtypes=_GATHERED)
_CONCATENATED = replace(_GATHER, least_ndim=1)
_SUMS = Admits(dtypes=_SUMMED)
_PARTS = replace(_SUMS, layouts=("contiguous",))
_NO_ARRAY = refuses(invalid.NO_ARRAY, "AssertionError")
_BAD_LISTS = (refuses(invalid.TUPLE, "AssertionError"), refuses(invalid.TOO_SHORT, "AssertionError"))
_NO_RANK = Refused(changes={"root": 9}, error="IndexError")


def _spelled(name: str, takes: Mapping[str, str], collective: str = "", **more: Any) -> Spelling:
    return Spelling(framework=FRAMEWORK, path=_COMM + name, takes=takes, collective=collective or name, **more)


_ALL_GATHER = _spelled(
    "all_gather",
    {"tensor_list": "filled list", "tensor": "array"},
    result="tensor_list",
    memory="replaced",
    admits=replace(_CONCATENATED, gradient=True),
    refused=(_NO_ARRAY, *_BAD_LISTS),
    example="""\
x = flow.tensor([1, 2]) + 10 * rank
outs = [None] * size
flow.comm.all_gather(outs, x)
""",
    notes=(
        (
            "The **entries of the list are replaced** by new tensors. The old entries are not written, so a list of "
            "None is enough, and if they are views of one buffer, the buffer does not change."
        ),
        "The new entries are differentiable.",
        "`all_gather_into_tensor` takes an output of any shape with as many elements as all inputs have.",
    ),
)
_ALL_GATHER_INTO = _spelled(
    "all_gather_into_tensor",
    {"output_tensor": "out", "input_tensor": "array"},
    "all_gather",
    result="output_tensor",
    arrangement="joined",
    loose=True,
    admits=_CONCATENATED,
)
_GATHER_LIST = _spelled(
    "gather",
    {"tensor": "array", "gather_list": "optional filled list", "dst": "ignored root"},
    result="gather_list",
    memory="replaced",
    only_root=("gather_list",),
    holders="all",
    admits=_CONCATENATED,
    alone="every rank receives every tensor, whatever dst is: it matches all_gather",
    example="""\
x = flow.tensor([1, 2]) + 10 * rank
outs = [None] * size
flow.comm.gather(x, outs, 0)
""",
    notes=(
        (
            "**Every rank that passes a list receives all tensors**, whichever rank `dst` is: it is an all_gather. A "
            "program that recognizes the root by its filled list breaks."
        ),
        "The entries of the list are replaced, as by `all_gather`.",
    ),
)
_SCATTER = _spelled(
    "scatter",
    {"tensor": "written but None", "scatter_list": "exact list of parts@root", "src": "root"},
    result="tensor",
    only_root=("scatter_list",),
    shares_own=True,
    admits=_PARTS,
    example="""\
parts = [flow.tensor([1, 2]), flow.tensor([3, 4])] if rank == 0 else None
out = flow.zeros(2, dtype=flow.int64)
flow.comm.scatter(out, parts, 0)
""",
    notes=(
        (
            "On the root, the output then shares memory with its part of the list: a change to one also changes "
            "the other."
        ),
        "A list that a rank other than `src` passes is not read.",
    ),
)
_REDUCE_SCATTER_INTO = _spelled(
    "reduce_scatter_tensor",
    {"output_tensor": "out", "input_tensor": "array of whole"},
    "reduce_scatter",
    result="output_tensor",
    arrangement="joined",
    admits=replace(_SUMS, least_ndim=1),
)
_OF_WHOLE_TENSORS = tuple(
    replace(one, form=form, arrangement=form, admits=replace(one.admits, least_ndim=0))
    for one in (_ALL_GATHER_INTO, _REDUCE_SCATTER_INTO)
    for form in ("stacked", "flat")
)
_COLLECTIVES = (
    _ALL_GATHER,
    _ALL_GATHER_INTO,
    _spelled(
        "all_reduce",
        {"tensor": "inout"},
        result="tensor",
        admits=_SUMS,
        refused=(_NO_ARRAY,),
        example="""\
x = flow.tensor([1, 2]) + 10 * rank
flow.comm.all_reduce(x)
""",
        notes=(
            "It always sums; the sum of booleans is the logical or. If you need a mean, divide afterwards.",
            "Autograd does not see it.",
        ),
    ),
    _spelled(
        "all_to_all",
        {"output_tensor_list": "exact list of places", "input_tensor_list": "exact list of parts"},
        result="output_tensor_list",
        shares_own=True,
        admits=replace(_CONCATENATED, layouts=("contiguous",)),
        refused=_BAD_LISTS,
        example="""\
parts = [flow.tensor([1, 2]) + 10 * rank, flow.tensor([3, 4]) + 10 * rank]
outs = [flow.zeros(2, dtype=flow.int64) for _ in range(size)]
flow.comm.all_to_all(outs, parts)
""",
        notes=(
            "The rank's own entry in the output then shares memory with its input.",
            "Unlike in `all_gather`, the tensors of the list are written, so they must exist.",
        ),
    ),
    _spelled(
        "reduce",
        {"tensor": "inout", "dst": "root"},
        result="tensor",
        admits=_SUMS,
        refused=(_NO_RANK, _NO_ARRAY),
        example="""\
x = flow.tensor([1, 2]) + 10 * rank
flow.comm.reduce(x, 0)
""",
        notes=("It always sums.",),
    ),
    _spelled(
        "broadcast",
        {"tensor": "inout", "src": "root"},
        result="tensor",
        admits=_SUMS,
        refused=(_NO_RANK, _NO_ARRAY),
        example="""\
x = flow.tensor([1, 2]) + 10 * rank
flow.comm.broadcast(x, 0)
""",
        notes=("`src` has no default.",),
    ),
    _GATHER_LIST,
    replace(_GATHER_LIST, form="everywhere", only_root=()),
    _SCATTER,
    replace(_SCATTER, form="everywhere", only_root=()),
    _spelled(
        "reduce_scatter",
        {"output": "rebound", "input_list": "exact list of equal parts"},
        result="output",
        memory="replaced",
        admits=replace(_PARTS, least_ndim=1),
        refused=_BAD_LISTS,
        example="""\
parts = [flow.tensor([1, 2]) + 10 * rank, flow.tensor([3, 4]) + 10 * rank]
out = flow.zeros(2, dtype=flow.int64)
flow.comm.reduce_scatter(out, parts)
""",
        notes=(
            "`output` is rebound to new memory: if it was a view of a tensor, that tensor keeps its values.",
            "`reduce_scatter_tensor` accepts any shapes with matching numbers of elements.",
        ),
    ),
    _REDUCE_SCATTER_INTO,
    *_OF_WHOLE_TENSORS,
)


_RING = Ring(
    framework=FRAMEWORK,
    path=_COMM + "recv",
    form="out",
    sends=Half("send", {"input": "array", "dst": "rank of another"}),
    receives=Half("recv", {"src": "rank", "out": "written"}),
    admits=replace(_SUMS, least_size=2),
    returns=lambda received, source: {"send": None, "recv": received},
    example="""\
x = flow.tensor([1, 2]) + 10 * rank
flow.comm.send(x, 1) if rank == 0 else flow.comm.recv(0)
""",
    notes=(
        (
            "`recv` needs no tensor: shape and dtype arrive with the message. If you pass `shape`, `dtype` and "
            "`device` to `recv`, pass `send_meta=False` to `send`. If you pass `out`, it is filled and returned."
        ),
        "If a rank sends to itself, OneFlow loses the message; here the `send` is refused.",
    ),
)
SPELLINGS: tuple[Binding, ...] = (
    *_COLLECTIVES,
    Barrier(
        framework=FRAMEWORK,
        path=_COMM + "barrier",
        takes={},
        admits=_SUMS,
        example="""\
flow.comm.barrier()
""",
    ),
    replace(
        _RING,
        form="",
        receives=Half("recv", {"src": "rank"}),
        admits=replace(_RING.admits, kinds=("torch",)),
        fills=False,
    ),
    _RING,
)
