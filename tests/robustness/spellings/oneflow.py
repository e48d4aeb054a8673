"""``collshim.oneflow.comm``: no groups, no init, no reduce op; bad arguments are AssertionErrors for the most part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim import oneflow as flow
from collshim.world import World
from tests.robustness.context import SIZE, RankContext
from tests.robustness.spelled import spelled
from tests.robustness.spelling import Spelling, Surface


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    return {"all": (tuple(range(SIZE)), None)}


_SPELLED = (
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "gather[everywhere]",
    "all_gather_into_tensor",
    "scatter",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
)

SURFACE = Surface(
    _enter,
    (
        *(spelled(f"oneflow.comm.{name}") for name in _SPELLED),
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
