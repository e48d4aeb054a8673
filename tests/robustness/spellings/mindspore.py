"""``collshim.mindspore.communication``: groups are names, results are returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim.mindspore import communication
from collshim.mindspore.communication import comm_func
from collshim.world import World
from tests.robustness.context import SIZE, RankContext
from tests.robustness.spelled import every, every_barrier, every_message
from tests.robustness.spelling import Arguments, Spelling, Surface
from tests.robustness.spellings.communicator import TURNED

_WORLD = "hccl_world_group"


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    communication.init()
    everybody = tuple(range(SIZE))
    communication.create_group("turned", list(TURNED))
    communication.create_group("destroyed", list(everybody))
    communication.destroy_group("destroyed")
    return {"all": (everybody, _WORLD), "turned": (TURNED, "turned"), "destroyed": (everybody, "destroyed")}


def _func(name: str, op: str = "", **more: Any) -> Spelling:
    good = more.pop("good")
    more["roles"] = {"group": "group", **more["roles"]}
    path = more.pop("path", f"mindspore.communication.comm_func.{name}")
    return Spelling(path, op=op, good=lambda h: {"group": h.group, **good(h)}, groups=True, **more)


def _asked(name: str, **more: Any) -> Spelling:
    return _func(name, path=f"mindspore.communication.{name}", **more)


def _batch(context: RankContext, arguments: Arguments) -> Any:
    operations = arguments.pop("p2p_op_list", None)
    if operations is None:
        others = {"group": arguments["group"]}
        sent = comm_func.P2POp("isend", context.own(), context.ranks[context.after], **others)
        operations = [sent, comm_func.P2POp("irecv", **arguments)]
    return comm_func.batch_isend_irecv(operations)[1]


_ROOTED = ("rows", "dtype", "root")

SURFACE = Surface(
    _enter,
    (
        *every("mindspore", {"comm_func.gather_into_tensor": _ROOTED, "comm_func.scatter_tensor": _ROOTED}),
        *every_message("mindspore"),
        *every_barrier("mindspore"),
        _func(
            "batch_isend_irecv",
            call=_batch,
            roles={
                "p2p_op_list": "operations",
                "tensor": "P2POp's tensor",
                "peer": "rank",
                "tag": "P2POp's tag",
                "group": "optional group",
            },
            good=lambda h: {"tensor": h.blank(), "peer": h.ranks[h.before], "tag": 0},
            right=RankContext.from_before,
        ),
        _asked("get_rank", roles={}, good=lambda h: {}, right=lambda h: h.rank, anywhere=True),
        _asked("get_group_size", roles={}, good=lambda h: {}, right=lambda h: SIZE, anywhere=True),
        _asked("get_process_group_ranks", roles={}, good=lambda h: {}, right=lambda h: list(h.ranks)),
        Spelling(
            "mindspore.communication.get_world_rank_from_group_rank",
            roles={"group": "group", "group_rank_id": "rank"},
            good=lambda h: {"group": "turned", "group_rank_id": h.root},
            right=lambda h: TURNED[h.root],
        ),
        Spelling(
            "mindspore.communication.get_group_rank_from_world_rank",
            roles={"group": "group", "world_rank_id": "rank"},
            good=lambda h: {"group": "turned", "world_rank_id": h.root},
            right=lambda h: TURNED.index(h.root),
        ),
        Spelling(
            "mindspore.communication.create_group",
            roles={"group": "new name", "rank_ids": "ranks", "options": "nothing"},
            good=lambda h: {"group": "made", "rank_ids": [1, 2, 0], "options": None},
            right=lambda h: [1, 2, 0].index(h.rank),
            call=lambda h, arguments: _created(arguments),
        ),
    ),
    states=("a world not entered",),
    threads_states=("a strange thread",),
)


def _created(arguments: Arguments) -> int:
    communication.create_group(**arguments)
    rank = communication.get_rank(arguments["group"])
    communication.destroy_group(arguments["group"])
    return rank
