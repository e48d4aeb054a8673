"""``collshim.oneflow.comm``: no groups, no init, no reduce op; bad arguments are mostly AssertionErrors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim import oneflow as flow
from collshim.world import World
from tests.robustness.context import SIZE
from tests.robustness.spelled import every, every_barrier, messages, spelled
from tests.robustness.spelling import Spelling, Surface


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    return {"all": (tuple(range(SIZE)), None)}


SURFACE = Surface(
    _enter,
    (
        *every("oneflow", without=["oneflow.comm.gather"]),
        spelled("oneflow.comm.gather[everywhere]"),
        *messages("oneflow.comm.recv[out]"),  # without it every message is accepted
        Spelling(
            "oneflow.comm.recv",
            roles={"src": "rank", "shape": "shape", "dtype": "dtype", "device": "device"},
            good=lambda h: {"src": h.before, "shape": (h.rows, 2), "dtype": h.dtype, "device": "cpu"},
            right=lambda h: h._replace(kind="torch").from_before(),
            before=lambda h: flow.comm.send(h.own(), h.after),
        ),
        *every_barrier("oneflow"),
    ),
    threads_states=("a strange thread",),
)
