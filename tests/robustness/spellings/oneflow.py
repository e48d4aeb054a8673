"""``collshim.oneflow.comm``: no groups, no init, no reduce op; bad arguments are AssertionErrors for the most part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim import oneflow as flow
from collshim.world import World
from tests.robustness.context import SIZE, RankContext, joined
from tests.robustness.spelling import Spelling, Surface


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    return {"all": (tuple(range(SIZE)), None)}


def _comm(name: str, op: str = "", **more: Any) -> Spelling:
    return Spelling(f"oneflow.comm.{name}", op=op or name, **more)


_SAME = ("rows", "dtype")

SURFACE = Surface(
    _enter,
    (
        _comm(
            "all_reduce",
            roles={"tensor": "inout"},
            good=lambda h: {"tensor": h.own()},
            right=RankContext.total,
            result="tensor",
            differs=_SAME,
        ),
        _comm(
            "reduce",
            roles={"tensor": "inout", "dst": "rank"},
            good=lambda h: {"tensor": h.own(), "dst": h.root},
            right=lambda h: h.total() if h.is_root else h.own(),
            result="tensor",
            differs=(*_SAME, "root"),
        ),
        _comm(
            "broadcast",
            roles={"tensor": "inout", "src": "rank"},
            good=lambda h: {"tensor": h.own(), "src": h.root},
            right=RankContext.roots,
            result="tensor",
            differs=(*_SAME, "root"),
        ),
        _comm(
            "all_gather",
            roles={"tensor_list": "filled list", "tensor": "array"},
            good=lambda h: {"tensor_list": [None] * SIZE, "tensor": h.own()},
            right=RankContext.everyones,
            result="tensor_list",
            differs=_SAME,
        ),
        _comm(
            "gather",
            op="all_gather",
            roles={"tensor": "array", "gather_list": "optional filled list"},
            good=lambda h: {"tensor": h.own(), "gather_list": [None] * SIZE, "dst": h.root},
            right=RankContext.everyones,
            result="gather_list",
            differs=_SAME,
        ),
        _comm(
            "all_gather_into_tensor",
            op="all_gather",
            roles={"output_tensor": "out", "input_tensor": "array"},
            good=lambda h: {"output_tensor": h.blank(SIZE), "input_tensor": h.own()},
            right=lambda h: joined(h.everyones()),
            result="output_tensor",
            differs=_SAME,
        ),
        _comm(
            "scatter",
            roles={"tensor": "inout", "scatter_list": "exact list of parts@root", "src": "rank"},
            good=lambda h: {"tensor": h.blank(), "scatter_list": h.parts() if h.is_root else None, "src": h.root},
            right=RankContext.roots_part,
            result="tensor",
            differs=_SAME,
        ),
        _comm(
            "reduce_scatter",
            roles={"output": "rebound", "input_list": "exact list of equal parts"},
            good=lambda h: {"output": h.blank(), "input_list": h.parts()},
            right=RankContext.total_of_parts,
            result="output",
            differs=_SAME,
        ),
        _comm(
            "reduce_scatter_tensor",
            op="reduce_scatter",
            roles={"output_tensor": "out", "input_tensor": "array of whole"},
            good=lambda h: {"output_tensor": h.blank(), "input_tensor": h.joined_parts()},
            right=RankContext.total_of_parts,
            result="output_tensor",
            differs=_SAME,
        ),
        _comm(
            "all_to_all",
            roles={"output_tensor_list": "exact list of places", "input_tensor_list": "exact list of parts"},
            good=lambda h: {"output_tensor_list": h.blanks(), "input_tensor_list": h.parts()},
            right=RankContext.column,
            result="output_tensor_list",
            differs=_SAME,
        ),
        Spelling(
            "oneflow.comm.send",
            roles={"input": "array", "dst": "rank of another"},
            good=lambda h: {"input": h.own(), "dst": h.after},
            right=RankContext.from_before,
            after=lambda h: flow.comm.recv(h.before, out=h.blank()),
        ),
        Spelling(
            "oneflow.comm.recv",
            roles={"src": "rank", "out": "written"},  # without it what comes is taken as it is
            good=lambda h: {"src": h.before, "out": h.blank()},
            right=RankContext.from_before,
            before=lambda h: flow.comm.send(h.own(), h.after),
        ),
        Spelling(
            "oneflow.comm.recv",
            roles={"src": "rank", "shape": "shape", "dtype": "dtype", "device": "device"},
            good=lambda h: {"src": h.before, "shape": (h.rows, 2), "dtype": h.dtype, "device": "cpu"},
            right=lambda h: h._replace(kind="torch").from_before(),
            before=lambda h: flow.comm.send(h.own(), h.after),
        ),
        Spelling("oneflow.comm.barrier", roles={}, good=lambda h: {}, right=lambda h: None, op="barrier"),
    ),
    threads_states=("a strange thread",),
)
