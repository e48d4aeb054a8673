"""``collshim.torch.distributed``: groups are objects, results go into arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim.torch import distributed as dist
from collshim.world import World
from tests.robustness.context import SIZE, RankContext, joined
from tests.robustness.spelling import Arguments, Call, Spelling, Surface
from tests.robustness.spellings.communicator import TURNED

_OPS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}


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


def _dist(name: str, op: str = "", waits: bool = False, **more: Any) -> Spelling:
    good = more.pop("good")
    more["roles"] = {"group": "optional group", **more["roles"]}
    return Spelling(
        f"torch.distributed.{name}",
        op=op,
        good=lambda h: {"group": h.group, **good(h)},
        groups=True,
        call=_waited(getattr(dist, name)) if waits else None,
        **more,
    )


def _waited(function: Any) -> Call:
    def call(context: RankContext, arguments: Arguments) -> None:
        function(**arguments).wait()

    return call


_SAME = ("rows", "dtype")

SURFACE = Surface(
    _enter,
    (
        _dist(
            "all_reduce",
            op="all_reduce",
            roles={"tensor": "inout", "op": "ReduceOp"},
            good=lambda h: {"tensor": h.own(), "op": _OPS[h.op]},
            right=RankContext.total,
            result="tensor",
            differs=(*_SAME, "op"),
        ),
        _dist(
            "reduce",
            op="reduce",
            roles={"tensor": "inout@root", "dst": "rank", "op": "ReduceOp"},
            good=lambda h: {"tensor": h.own(), "dst": h.global_root, "op": _OPS[h.op]},
            right=lambda h: h.total() if h.is_root else h.own(),
            result="tensor",
            differs=(*_SAME, "root", "op"),
        ),
        _dist(
            "reduce_scatter",
            op="reduce_scatter",
            roles={"output": "out", "input_list": "exact list of parts", "op": "ReduceOp"},
            good=lambda h: {"output": h.blank(), "input_list": h.parts(), "op": _OPS[h.op]},
            right=RankContext.total_of_parts,
            result="output",
            differs=(*_SAME, "op"),
        ),
        _dist(
            "reduce_scatter_single",
            op="reduce_scatter",
            roles={"output": "out", "input": "array of whole", "op": "ReduceOp"},
            good=lambda h: {"output": h.blank(), "input": h.joined_parts(), "op": _OPS[h.op]},
            right=RankContext.total_of_parts,
            result="output",
            differs=(*_SAME, "op"),
        ),
        _dist(
            "broadcast",
            op="broadcast",
            roles={"tensor": "inout", "src": "rank"},
            good=lambda h: {"tensor": h.own(), "src": h.global_root},
            right=RankContext.roots,
            result="tensor",
            differs=(*_SAME, "root"),
        ),
        _dist(
            "broadcast",
            op="broadcast",
            roles={"tensor": "inout", "group_src": "rank"},
            good=lambda h: {"tensor": h.own(), "group_src": h.root},
            right=RankContext.roots,
            result="tensor",
            differs=(*_SAME, "root"),
        ),
        _dist(
            "scatter",
            op="scatter",
            roles={"tensor": "out@root", "scatter_list": "exact list of parts@root", "src": "optional rank"},
            good=lambda h: {
                "tensor": h.blank(),
                "scatter_list": h.parts() if h.is_root else None,
                "src": h.global_root,
            },
            right=RankContext.roots_part,
            result="tensor",
            differs=_SAME,
        ),
        _dist(
            "all_gather",
            op="all_gather",
            roles={"tensor_list": "exact list of outs", "tensor": "array"},
            good=lambda h: {"tensor_list": h.blanks(), "tensor": h.own()},
            right=RankContext.everyones,
            result="tensor_list",
            differs=_SAME,
        ),
        _dist(
            "all_gather_single",
            op="all_gather",
            roles={"output_tensor": "out", "input_tensor": "array"},
            good=lambda h: {"output_tensor": h.blank(SIZE), "input_tensor": h.own()},
            right=lambda h: joined(h.everyones()),
            result="output_tensor",
            differs=_SAME,
        ),
        _dist(
            "gather",
            op="gather",
            roles={"tensor": "array", "gather_list": "exact list of outs@root", "dst": "optional rank"},
            good=lambda h: {
                "tensor": h.own(),
                "gather_list": h.blanks() if h.is_root else None,
                "dst": h.global_root,
            },
            right=lambda h: h.everyones() if h.is_root else None,
            result="gather_list",
            differs=_SAME,
        ),
        _dist(
            "all_to_all",
            op="all_to_all",
            roles={"output_tensor_list": "exact list of outs", "input_tensor_list": "exact list of parts"},
            good=lambda h: {"output_tensor_list": h.blanks(), "input_tensor_list": h.parts()},
            right=RankContext.column,
            result="output_tensor_list",
            differs=_SAME,
        ),
        _dist(
            "all_to_all_single",
            op="all_to_all",
            roles={
                "output": "out",
                "input": "array of whole",
                "output_split_sizes": "splits",
                "input_split_sizes": "splits",
            },
            good=lambda h: {
                "output": h.blank(SIZE),
                "input": h.joined_parts(),
                "output_split_sizes": [h.rows] * SIZE,
                "input_split_sizes": [h.rows] * SIZE,
            },
            right=lambda h: joined(h.column()),
            result="output",
            differs=_SAME,
        ),
        _dist(
            "send",
            roles={"tensor": "array", "dst": "rank of another", "tag": "tag"},
            good=lambda h: {"tensor": h.own(), "dst": h.ranks[h.after], "tag": 3},
            right=RankContext.from_before,
            after=lambda h: _received(h, 3),
        ),
        _dist(
            "recv",
            roles={"tensor": "written but None", "src": "optional rank", "tag": "tag"},
            good=lambda h: {"tensor": h.blank(), "src": h.ranks[h.before], "tag": 4},
            right=RankContext.from_before,
            result="tensor",
            before=lambda h: dist.isend(h.own(), h.ranks[h.after], h.group, 4),
        ),
        _dist(
            "isend",
            waits=True,
            roles={"tensor": "array", "dst": "rank", "tag": "tag"},
            good=lambda h: {"tensor": h.own(), "dst": h.ranks[h.after], "tag": 3},
            right=RankContext.from_before,
            after=lambda h: _received(h, 3),
        ),
        _dist(
            "irecv",
            waits=True,
            roles={"tensor": "written but None", "src": "optional rank", "tag": "tag"},
            good=lambda h: {"tensor": h.blank(), "src": h.ranks[h.before], "tag": 4},
            right=RankContext.from_before,
            result="tensor",
            before=lambda h: dist.isend(h.own(), h.ranks[h.after], h.group, 4),
        ),
        _dist(
            "barrier",
            op="barrier",
            roles={"timeout": "timedelta"},
            good=lambda h: {"timeout": None},
            right=lambda h: None,
        ),
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


def _received(context: RankContext, tag: int) -> Any:
    array = context.blank()
    dist.recv(array, context.ranks[context.before], context.group, tag)
    return array


def _place_in(group: Any) -> int:
    rank: int = group.rank()
    dist.destroy_process_group(group)
    return rank
