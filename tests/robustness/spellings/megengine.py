"""``collshim.megengine``: groups are objects, results are returned, the root is the group's first rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim.megengine import distributed, functional
from collshim.world import World
from tests.robustness.context import SIZE, RankContext, joined
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


def _func(name: str, op: str, **more: Any) -> Spelling:
    good, right = more.pop("good"), more.pop("right")
    return Spelling(
        f"megengine.functional.distributed.{name}",
        op=op,
        roles={"group": "group", "device": "MegEngine's device", **more.pop("roles")},
        good=lambda h: {"group": h.group, "device": None, **good(_rooted(h))},
        right=lambda h: right(_rooted(h)),
        groups=True,
        **more,
    )


def _rooted(context: RankContext) -> RankContext:
    return context._replace(root=0)


def _reduction(name: str, right: Any = RankContext.total) -> Spelling:
    return _func(
        name, "all_reduce", roles={"inp": "array"}, good=lambda h: {"inp": h.own()}, right=right, differs=_SAME
    )


def _broadcast_list(context: RankContext, arguments: Arguments) -> Any:
    distributed.bcast_list_(**arguments)
    return arguments["inps"]


_SAME = ("rows", "dtype")

SURFACE = Surface(
    _enter,
    (
        _reduction("all_reduce_sum"),
        _reduction("all_reduce_max", lambda h: h.full(h.number(SIZE - 1))),
        _reduction("all_reduce_min", lambda h: h.full(h.number(0))),
        _func(
            "reduce_sum",
            "reduce",
            roles={"inp": "array"},
            good=lambda h: {"inp": h.own()},
            right=lambda h: h.total() if h.is_root else None,
            differs=_SAME,
        ),
        _func(
            "broadcast",
            "broadcast",
            roles={"inp": "array@first"},
            good=lambda h: {"inp": h.own()},
            right=RankContext.roots,
        ),
        _func(
            "all_gather",
            "all_gather",
            roles={"inp": "array", "axis": "axis"},
            good=lambda h: {"inp": h.own(), "axis": 0},
            right=lambda h: joined(h.everyones()),
            differs=_SAME,
        ),
        _func(
            "reduce_scatter_sum",
            "reduce_scatter",
            roles={"inp": "array to divide", "axis": "axis"},
            good=lambda h: {"inp": h.joined_parts(), "axis": 0},
            right=RankContext.total_of_parts,
            differs=_SAME,
        ),
        _func(
            "gather",
            "gather",
            roles={"inp": "array", "axis": "axis"},
            good=lambda h: {"inp": h.own(), "axis": 0},
            right=lambda h: joined(h.everyones()) if h.is_root else None,
            differs=_SAME,
        ),
        _func(
            "scatter",
            "scatter",
            roles={"inp": "array to divide@first", "axis": "axis@first"},
            good=lambda h: {"inp": h.joined_parts(), "axis": 0},
            right=RankContext.roots_part,
        ),
        _func(
            "all_to_all",
            "all_to_all",
            roles={"inp": "array to divide", "split_axis": "axis", "concat_axis": "axis"},
            good=lambda h: {"inp": h.joined_parts(), "split_axis": 0, "concat_axis": 0},
            right=lambda h: joined(h.column()),
            differs=_SAME,
        ),
        _func(
            "collective_comm",
            "all_gather",
            roles={"inp": "array", "mode": "mode"},
            good=lambda h: {"inp": h.own(), "mode": "ALL_GATHER"},
            right=lambda h: joined(h.everyones()),
            differs=_SAME,
        ),
        Spelling(
            "megengine.functional.distributed.remote_send",
            roles={"inp": "array", "dest_rank": "rank"},
            good=lambda h: {"inp": h.own(), "dest_rank": h.after},
            right=RankContext.from_before,
            after=lambda h: functional.distributed.remote_recv(h.before, inp=h.blank()),
        ),
        Spelling(
            "megengine.functional.distributed.remote_recv",
            roles={"src_rank": "rank", "device": "MegEngine's device"},
            good=lambda h: {"src_rank": h.before, "inp": h.blank()},
            right=RankContext.from_before,
            before=lambda h: functional.distributed.remote_send(h.own(), h.after),
        ),
        Spelling(
            "megengine.distributed.new_group",
            roles={"proc_ranks": "ranks"},
            good=lambda h: {"proc_ranks": [1, 2, 0]},
            right=lambda h: [1, 2, 0].index(h.rank),
            call=lambda h, arguments: distributed.new_group(**arguments).rank,
        ),
        Spelling(
            "megengine.distributed.group_barrier",
            roles={"group": "group"},
            good=lambda h: {"group": h.group},
            right=lambda h: None,
            op="barrier",
            groups=True,
            anywhere=True,
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
            right=lambda h: True,
            call=lambda h, arguments: callable(distributed.make_allreduce_cb(**arguments)),
        ),
    ),
    states=("a world not entered",),
    threads_states=("a strange thread",),
)
