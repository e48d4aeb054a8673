"""``collshim.torch.distributed``: groups are objects, results go into arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collshim.torch import distributed as dist
from collshim.world import World
from tests.robustness.context import SIZE
from tests.robustness.spelled import every, every_barrier, every_message, spelled
from tests.robustness.spelling import Spelling, Surface
from tests.robustness.spellings.communicator import TURNED


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    dist.init_process_group()
    everybody = tuple(range(SIZE))
    destroyed = dist.new_group(list(everybody))
    dist.destroy_process_group(destroyed)
    return {
        "all": (everybody, None),
        "turned": (TURNED, dist.new_group(list(TURNED), sort_ranks=False)),
        "destroyed": (everybody, destroyed),
    }


def _dist(name: str, op: str = "", **more: Any) -> Spelling:
    good = more.pop("good")
    more["roles"] = {"group": "optional group", **more["roles"]}
    return Spelling(
        f"torch.distributed.{name}",
        op=op,
        good=lambda h: {"group": h.group, **good(h)},
        groups=True,
        **more,
    )


_SPARSE = ("a sparse tensor",)

SURFACE = Surface(
    _enter,
    (
        *(replace(one, takes=_SPARSE) if one.path == "torch.distributed.all_reduce" else one for one in every("torch")),
        spelled("torch.distributed.broadcast[group_src]"),
        *every_message("torch"),
        # monitored_barrier consists of messages: a rank's call in its place leaves the communicator broken
        *every_barrier("torch", {"timeout": "timedelta"}, ["torch.distributed.monitored_barrier"]),
        _dist("get_rank", roles={}, good=lambda h: {}, right=lambda h: h.rank),
        _dist("get_world_size", roles={}, good=lambda h: {}, right=lambda h: SIZE),
        Spelling(
            "torch.distributed.new_group",
            roles={"ranks": "optional ranks", "timeout": "timedelta", "backend": "backend"},
            good=lambda h: {"ranks": [1, 2, 0], "timeout": None, "backend": None, "sort_ranks": False},
            right=lambda h: [1, 2, 0].index(h.rank),
            call=lambda h, arguments: _place_in(dist.new_group(**arguments)),
        ),
    ),
    states=("a world not entered",),
    threads_states=("a strange thread",),
)


def _place_in(group: Any) -> int:
    rank: int = group.rank()
    dist.destroy_process_group(group)
    return rank
