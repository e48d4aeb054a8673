"""``collshim.megengine``: groups are objects, results are returned, the root is the group's first rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from collshim.megengine import distributed
from collshim.world import World
from tests.robustness.context import SIZE, RankContext, joined
from tests.robustness.spelled import every, every_barrier, every_message
from tests.robustness.spelling import Arguments, Spelling, Surface
from tests.robustness.spellings.communicator import TURNED


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    distributed.init_process_group("127.0.0.1", 23456, SIZE, world.rank, world.rank)
    everybody = tuple(range(SIZE))
    return {
        "all": (everybody, distributed.WORLD),
        "turned": (TURNED, distributed.new_group(list(TURNED))),
        "destroyed": (everybody, distributed.Group([])),  # MegEngine destroys no group; this one has no ranks yet
    }


def _broadcast_list(context: RankContext, arguments: Arguments) -> Any:
    distributed.bcast_list_(**arguments)
    return arguments["inps"]


SURFACE = Surface(
    _enter,
    (
        *every("megengine", {"distributed.broadcast": (), "distributed.scatter": ()}),
        Spelling(
            "megengine.functional.distributed.collective_comm",
            roles={"group": "group", "device": "MegEngine's device", "inp": "array", "mode": "mode"},
            good=lambda h: {"group": h.group, "device": None, "inp": h.own(), "mode": "ALL_GATHER"},
            right=lambda h: joined(h.result("all_gather")),
            op="all_gather",
            differs=("rows", "dtype"),
            groups=True,
        ),
        *every_message("megengine"),
        *every_barrier("megengine", anywhere=True),
        Spelling(
            "megengine.distributed.new_group",
            roles={"proc_ranks": "ranks"},
            good=lambda h: {"proc_ranks": [1, 2, 0]},
            right=lambda h: [1, 2, 0].index(h.rank),
            call=lambda h, arguments: distributed.new_group(**arguments).rank,
        ),
        Spelling(
            "megengine.distributed.bcast_list_",
            roles={"inps": "list to overwrite", "group": "group"},
            good=lambda h: {"inps": h.parts(), "group": h.group},
            right=lambda h: [h.full(h.number(0, getter)) for getter in range(SIZE)],
            call=_broadcast_list,
            groups=True,
        ),
        Spelling(
            "megengine.distributed.make_allreduce_cb",
            roles={"reduce_method": "reduce method"},
            good=lambda h: {"reduce_method": "sum"},
            right=lambda h: torch.as_tensor(h.result("all_reduce")),
            call=lambda h, arguments: distributed.make_allreduce_cb(**arguments)(None, h.own()).get(),
        ),
    ),
    states=("a world not entered",),
    threads_states=("a strange thread",),
)
