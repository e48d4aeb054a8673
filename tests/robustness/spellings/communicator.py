"""The engine's own interface: the methods of ``Communicator``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim import Communicator
from collshim.world import World
from tests.robustness.context import SIZE, RankContext, stacked
from tests.robustness.spelling import Arguments, Spelling, Surface

TURNED = (2, 0, 1)


def _enter(world: World) -> Mapping[str, tuple[tuple[int, ...], Any]]:
    everybody = tuple(range(SIZE))
    turned, closed = world.communicator.subgroup(TURNED), world.communicator.subgroup(everybody)
    assert closed is not None
    closed.close()
    return {
        "all": (everybody, world.communicator),
        "turned": (TURNED, turned),
        "destroyed": (everybody, closed),
    }


def _method(name: str, op: str | None = None, **more: Any) -> Spelling:
    def call(context: RankContext, arguments: Arguments) -> Any:
        method = getattr(arguments.pop("self", context.group), name)
        return method(**arguments) if name == "subgroup" else method(**arguments).wait()

    more["roles"] = {"self": "communicator", **more["roles"]}
    return Spelling(f"communicator.{name}", op=name if op is None else op, call=call, groups=True, **more)


def _of_subgroup(context: RankContext) -> Arguments:
    return {"ranks": [1, 2, 0]}


def _place_in_subgroup(context: RankContext) -> int:
    return [1, 2, 0].index(context.rank)


def _subgroup(context: RankContext, arguments: Arguments) -> int:
    group: Communicator | None = arguments.pop("self", context.group).subgroup(**arguments)
    assert group is not None
    rank = group.rank
    group.close()
    return rank


_SAME = ("rows", "dtype")

SURFACE = Surface(
    _enter,
    (
        _method(
            "all_reduce",
            roles={"array": "array", "op": "engine's op", "out": "optional out"},
            good=lambda h: {"array": h.own(), "op": h.op, "out": h.blank()},
            differs=(*_SAME, "op"),
        ),
        _method(
            "reduce",
            roles={"array": "array", "root": "engine's rank", "op": "engine's op", "out": "optional out@root"},
            good=lambda h: {"array": h.own(), "root": h.root, "op": h.op, "out": h.blank()},
            differs=(*_SAME, "root", "op"),
        ),
        _method(
            "broadcast",
            roles={"array": "array@root", "root": "engine's rank", "out": "optional out"},
            good=lambda h: {"array": h.own(), "root": h.root, "out": h.blank()},
            differs=(*_SAME, "root"),
        ),
        _method(
            "all_gather",
            roles={"array": "array", "out": "optional out"},
            good=lambda h: {"array": h.own(), "out": stacked(h.blanks())},
            right=lambda h: stacked(h.result("all_gather")),
            differs=_SAME,
        ),
        _method(
            "all_gather",
            roles={"array": "array", "out": "optional list of outs"},
            good=lambda h: {"array": h.own(), "out": h.blanks()},
            differs=_SAME,
        ),
        _method(
            "all_gather_ragged",
            op="all_gather",
            roles={"array": "array given back"},
            good=lambda h: {"array": h.own()},
            differs=("dtype",),
        ),
        _method(
            "gather",
            roles={"array": "array", "root": "engine's rank", "out": "optional list of outs@root"},
            good=lambda h: {"array": h.own(), "root": h.root, "out": h.blanks() if h.is_root else None},
            differs=(*_SAME, "root"),
        ),
        _method(
            "scatter",
            roles={"parts": "list of parts@root", "root": "engine's rank", "out": "optional out@root"},
            good=lambda h: {"parts": h.parts() if h.is_root else None, "root": h.root, "out": h.blank()},
            differs=_SAME,
        ),
        _method(
            "reduce_scatter",
            roles={"parts": "list of parts", "op": "engine's op", "out": "optional out"},
            good=lambda h: {"parts": h.parts(), "op": h.op, "out": h.blank()},
            differs=(*_SAME, "op"),
        ),
        _method(
            "reduce_scatter",
            roles={"parts": "stacked parts", "op": "engine's op"},
            good=lambda h: {"parts": stacked(h.parts()), "op": h.op},
            differs=(*_SAME, "op"),
        ),
        _method(
            "all_to_all",
            roles={"parts": "list of parts", "out": "optional list of outs"},
            good=lambda h: {"parts": h.parts(), "out": h.blanks()},
            differs=_SAME,
        ),
        _method(
            "all_to_all",
            roles={"parts": "stacked parts", "out": "optional out"},
            good=lambda h: {"parts": stacked(h.parts()), "out": stacked(h.blanks())},
            right=lambda h: stacked(h.result("all_to_all")),
            differs=_SAME,
        ),
        _method(
            "send",
            op="",
            roles={"array": "array", "to": "engine's rank", "tag": "tag"},
            good=lambda h: {"array": h.own(), "to": h.after, "tag": 5},
            right=RankContext.from_before,
            after=lambda h: h.group.recv(h.before, tag=5, out=h.blank()).wait(),
        ),
        _method(
            "recv",
            op="",
            roles={"source": "engine's optional rank", "out": "written", "tag": "tag"},
            good=lambda h: {"source": h.before, "out": h.blank(), "tag": 6},
            right=RankContext.from_before,
            before=lambda h: h.group.send(h.own(), h.after, tag=6),
        ),
        _method("barrier", roles={}, good=lambda h: {}, right=lambda h: None),
        Spelling(
            "communicator.subgroup",
            roles={"self": "communicator", "ranks": "ranks"},
            good=_of_subgroup,
            right=_place_in_subgroup,
            call=_subgroup,
            groups=True,
        ),
    ),
)
