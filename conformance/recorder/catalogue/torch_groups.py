"""torch.distributed: groups, ranks in them, and collectives within them."""

from __future__ import annotations

from collections.abc import Iterator

from collshim.conformance.recorder.asked import Asked, Inputs, blank, joined, part
from collshim.conformance.recorder.catalogue.torch_reductions import DIST, one

NEW_GROUP = DIST.path + "new_group"
PAIR = "_g = dist.new_group([0, 2]); "
TURNED = "_g = dist.new_group([2, 0], sort_ranks=False); "
MEMBERS = "{} if rank in (0, 2) else None"
QUIETLY = "import warnings; warnings.simplefilter('ignore'); "


def _lists(rank: int, size: int) -> Inputs:
    return {
        "x": part(rank),
        "outs": [blank(), blank()],
        "parts": [part(rank, start=1), part(rank, start=41)],
        "out": blank(),
        "into": blank((4, 3)),
        "whole": part(rank, (4, 3)),
    }


IN_GROUP = {
    "all_reduce": "x, group=_g",
    "broadcast": "x, 2, group=_g",
    "reduce": "x, 2, group=_g",
    "all_gather": "outs, x, group=_g",
    "all_gather_single": "into, x, group=_g",
    "gather": "x, outs if rank == 2 else None, dst=2, group=_g",
    "scatter": "out, parts if rank == 2 else None, src=2, group=_g",
    "reduce_scatter": "out, parts, group=_g",
    "reduce_scatter_single": "out, whole, group=_g",
    "all_to_all": "outs, parts, group=_g",
    "all_to_all_single": "into, whole, group=_g",
    "barrier": "group=_g",
}


def _within() -> Iterator[list[Asked]]:
    also = (NEW_GROUP,)
    for name, arguments in IN_GROUP.items():
        yield DIST(name, "group", arguments, _lists, (3, 4), text=PAIR + MEMBERS, also=also)
        yield DIST(name, "unsorted group", arguments, _lists, (3, 4), text=TURNED + MEMBERS, also=also)
        yield DIST(name, "outside group", arguments, _lists, (3,), text=QUIETLY + PAIR + "{}", also=also)
    for name, arguments in {"broadcast": "x, group=_g, group_src=1", "reduce": "x, group=_g, group_dst=1"}.items():
        yield DIST(name, "group rank", arguments, _lists, (3,), text=PAIR + MEMBERS, also=also)
        yield DIST(name, "group rank, unsorted", arguments, _lists, (3,), text=TURNED + MEMBERS, also=also)
    send = "({} if rank == 0 else dist.recv(out, 0, group=_g) if rank == 2 else None)"
    yield DIST("send", "group", "x, 2, group=_g", _lists, (3,), text=PAIR + send, also=(DIST.path + "recv", NEW_GROUP))
    yield DIST("broadcast", "root outside group", "x, 1, group=_g", _lists, (3,), text=PAIR + MEMBERS, also=also)


def _asked_of_groups() -> Iterator[list[Asked]]:
    for name, text in {"sorted": PAIR, "unsorted": TURNED, "all": "_g = None; "}.items():
        sizes = text + "[{}, dist.get_world_size(_g)]"
        yield DIST("get_rank", name, "_g", sizes=(3, 4), text=sizes, also=(DIST.path + "get_world_size", NEW_GROUP))
        ranks = text + MEMBERS.replace("{}", "[{}, dist.get_global_rank(_g, 1), dist.get_group_rank(_g, 0)]")
        if name != "all":
            yield DIST("get_process_group_ranks", name, "_g", sizes=(3, 4), text=ranks, also=(NEW_GROUP,))
    yield DIST("new_group", "not a member", "[0]", sizes=(2, 3), text="{} if rank else dist.new_group([0]) is None")
    yield DIST.each("new_group", {"duplicates": "[0, 0]", "out of range": "[0, 9]", "empty": "[]"}, sizes=(2,))
    for name, rank in {"get_group_rank": 1, "get_global_rank": 7}.items():
        yield DIST(name, "not in it", f"_g, {rank}", sizes=(3,), text=PAIR + "{}", also=(NEW_GROUP,))
    yield DIST("is_initialized", "yes", text="[{}, dist.is_available()]")
    yield DIST("get_backend", "gloo", sizes=(1, 2), text="str({})")
    yield DIST("init_process_group", "twice", "'gloo'", sizes=(1, 2), match="twice")
    for then, inputs in {"a call": one(), "is_initialized": None}.items():
        text = "{}; " + ("dist.all_reduce(x)" if inputs else "dist.is_initialized()")
        yield DIST("destroy_process_group", f"then {then}", inputs=inputs, sizes=(1, 2), text=text, alone=True)
    yield DIST("barrier", "all")
    yield DIST("barrier", "async", "async_op=True", sizes=(1, 2), text="w = {}; [w, w.wait()]")
    yield DIST("monitored_barrier", "all", sizes=(1, 2, 3))


CALLS = joined(_within, _asked_of_groups)
