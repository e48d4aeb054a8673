"""``mindspore.communication.comm_func``: collectives that return their result and do not change their input.

A function that may be asynchronous returns ``(output, handle)``, whose handle is None unless requested; other functions
return only the output. On ranks other than the root the output is an array of one arbitrary element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.conformance.bindings.answers import Handle, Tree
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.spellings.mindspore.common import (
    ANY,
    EXCHANGED,
    FRAMEWORK,
    NO_ARRAY,
    NO_SUCH_RANK,
    NOT_AVERAGED,
    REDUCED,
    ROWS,
    asynchronous,
    counting,
    placeholder,
    spelled,
)

COMM_FUNC = "communication.comm_func"


def _and_no_handle(result: Tree) -> Tree:
    return (tuple(result) if isinstance(result, list) else result, None)


def _and_handle(result: Tree) -> Tree:
    return (tuple(result) if isinstance(result, list) else result, Handle())


def _spelled(name: str, collective: str, takes: Mapping[str, str], **more: Any) -> Spelling:
    return spelled(f"{COMM_FUNC}.{name}", collective, takes, **{"arrangement": "joined"} | more)


def _both_ways(name: str, collective: str, takes: Mapping[str, str], **more: Any) -> tuple[Spelling, ...]:
    """Return the spellings of both calls of a function that may be asynchronous."""
    spelling = _spelled(name, collective, takes, wrap=_and_no_handle, **more)
    return spelling, replace(asynchronous(spelling), wrap=_and_handle)


_SUMS = replace(REDUCED, gradient=True)
_MOVED = replace(ANY, gradient=True)
_MOVED_ROWS = replace(ROWS, gradient=True)
_MOVED_PARTS = replace(EXCHANGED, gradient=True)
_COUNTS = counting(COMM_FUNC)

FUNCTIONAL: tuple[Binding, ...] = (
    *_both_ways(
        "all_gather_into_tensor",
        "all_gather",
        {"tensor": "array"},
        admits=_MOVED_ROWS,
        refused=(NO_ARRAY,),
        example="""\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.all_gather_into_tensor(x)
""",
        notes=(
            ("Use the result: `output, _ = comm_func.all_gather_into_tensor(x)`. It is concatenated along axis 0."),
            (
                "The manual's text says `(N, x1, x2, ...)`; see [where the documents contradict "
                "themselves](../conventions.md#where-the-documents-contradict-themselves)."
            ),
        ),
    ),
    *_both_ways(
        "all_reduce",
        "all_reduce",
        {"tensor": "array", "op": "MindSpore's op"},
        admits=_SUMS,
        refused=(NOT_AVERAGED, NO_ARRAY),
        example="""\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.all_reduce(x)
""",
        notes=(
            "`op` is text: `sum`, `prod`, `min` or `max`; `avg` is a TypeError.",
            "Use the result: `output, _ = comm_func.all_reduce(x)`. `x` keeps its value.",
        ),
    ),
    *_both_ways(
        "reduce_scatter_tensor",
        "reduce_scatter",
        {"tensor": "array to divide", "op": "engine's op"},
        admits=replace(_SUMS, least_ndim=1),
        refused=(NO_ARRAY,),
        example="""\
x = ms.Tensor([1, 2, 3, 4]) + 10 * rank
comm_func.reduce_scatter_tensor(x)
""",
        notes=(
            "It takes one tensor, which is cut along axis 0; its length must be a multiple of the number of ranks.",
        ),
    ),
    *_both_ways(
        "all_to_all_with_output_shape",
        "all_to_all",
        {"output_shape_list": "shapes", "input_tensor_list": "list of parts", "group": "optional group"},
        arrangement="list",
        admits=_MOVED_PARTS,
        example="""\
parts = [ms.Tensor([1, 2]) + 10 * rank, ms.Tensor([3, 4]) + 10 * rank]
comm_func.all_to_all_with_output_shape([(2,)] * size, parts)
""",
        notes=(
            (
                "The shapes of the output are passed first, and may be unequal; it returns a pair of a tuple and "
                "the handle."
            ),
            "`all_to_all_single_with_output_shape` takes one tensor each way.",
        ),
    ),
    *_both_ways(
        "all_to_all_single_with_output_shape",
        "all_to_all",
        {
            "output_shape": "whole shape",
            "tensor": "array of whole",
            "output_split_sizes": "optional rows from each",
            "input_split_sizes": "optional rows to each",
            "group": "optional group",
        },
        admits=_MOVED_PARTS,
    ),
    _COUNTS,
    asynchronous(_COUNTS),
    _spelled(
        "broadcast",
        "broadcast",
        {"tensor": "array", "src": "root"},
        admits=_MOVED,
        rule="own",
        refused=(NO_SUCH_RANK,),
        example="""\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.broadcast(x, 0)
""",
        notes=(
            "It returns only the output, not a pair.",
            (
                "The gradient is MindSpore's own rule: the gradient of each rank's input is that of the rank's output, "
                "so the root's gradient is not the sum over the ranks."
            ),
        ),
    ),
    _spelled(
        "reduce",
        "reduce",
        {"tensor": "array", "dst": "root", "op": "engine's op"},
        admits=_SUMS,
        off_root=placeholder,
        refused=(NO_SUCH_RANK,),
        example="""\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.reduce(x, 0)
""",
        notes=(
            "It returns only the output, not a pair.",
            "On ranks other than the root, the result is one arbitrary element: do not use it.",
        ),
    ),
    _spelled(
        "gather_into_tensor",
        "gather",
        {"tensor": "array", "dst": "root"},
        admits=_MOVED_ROWS,
        off_root=placeholder,
        example="""\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.gather_into_tensor(x, 0)
""",
        notes=(
            "It returns only the output, not a pair; the output is concatenated along axis 0.",
            "On ranks other than the root, the result is one arbitrary element.",
        ),
    ),
    _spelled(
        "scatter_tensor",
        "scatter",
        {"tensor": "array to divide", "src": "root"},
        admits=_MOVED_ROWS,
        example="""\
x = ms.Tensor([1, 2, 3, 4]) + 10 * rank
comm_func.scatter_tensor(x, 0)
""",
        notes=(
            "It takes one tensor, which is cut along axis 0. Every rank must pass a tensor, because its shape is read.",
            "It returns only the output, not a pair.",
        ),
    ),
    Barrier(
        framework=FRAMEWORK,
        path=f"mindspore.{COMM_FUNC}.barrier",
        admits=ANY,
        example="""\
comm_func.barrier()
""",
    ),
)
