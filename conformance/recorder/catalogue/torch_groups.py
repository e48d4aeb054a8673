"""torch.distributed: groups, ranks in them, and collectives within them."""

from __future__ import annotations

from collections.abc import Iterator

from collshim.conformance.recorder.asked import Asked, Inputs, ask, blank, part
from collshim.conformance.recorder.catalogue.torch_reductions import D, one

G = D + "new_group"
PAIR = "_g = dist.new_group([0, 2]); "
TURNED = "_g = dist.new_group([2, 0], sort_ranks=False); "


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
    "all_reduce": "dist.all_reduce(x, group=_g)",
    "broadcast": "dist.broadcast(x, 2, group=_g)",
    "reduce": "dist.reduce(x, 2, group=_g); _x = x",
    "all_gather": "dist.all_gather(outs, x, group=_g)",
    "all_gather_single": "dist.all_gather_single(into, x, group=_g)",
    "gather": "dist.gather(x, outs if rank == 2 else None, dst=2, group=_g)",
    "scatter": "dist.scatter(out, parts if rank == 2 else None, src=2, group=_g)",
    "reduce_scatter": "dist.reduce_scatter(out, parts, group=_g)",
    "reduce_scatter_single": "dist.reduce_scatter_single(out, whole, group=_g)",
    "all_to_all": "dist.all_to_all(outs, parts, group=_g)",
    "all_to_all_single": "dist.all_to_all_single(into, whole, group=_g)",
    "barrier": "dist.barrier(group=_g)",
}


def _within() -> Iterator[list[Asked]]:
    for name, text in IN_GROUP.items():
        member = (
            f"{text} if rank in (0, 2) else None"
            if ";" not in text
            else f"{text.split(';')[0]} if rank in (0, 2) else None"
        )
        yield ask(f"{name}/group", (D + name, G), PAIR + member, _lists, sizes=(3, 4))
        yield ask(f"{name}/unsorted group", (D + name, G), TURNED + member, _lists, sizes=(3, 4))
        outside = "import warnings; warnings.simplefilter('ignore'); "
        yield ask(f"{name}/outside group", (D + name, G), outside + PAIR + text.split(";")[0], _lists, sizes=(3,))
    rooted = {
        "broadcast": "dist.broadcast(x, group=_g, group_src=1)",
        "reduce": "dist.reduce(x, group=_g, group_dst=1)",
    }
    for name, text in rooted.items():
        yield ask(f"{name}/group rank", (D + name, G), PAIR + f"{text} if rank in (0, 2) else None", _lists, sizes=(3,))
        yield ask(
            f"{name}/group rank, unsorted",
            (D + name, G),
            TURNED + f"{text} if rank in (0, 2) else None",
            _lists,
            sizes=(3,),
        )
    send = "(dist.send(x, 2, group=_g) if rank == 0 else dist.recv(out, 0, group=_g) if rank == 2 else None)"
    yield ask("send/group", (D + "send", D + "recv", G), PAIR + send, _lists, sizes=(3,))
    foreign = "dist.broadcast(x, 1, group=_g) if rank in (0, 2) else None"
    yield ask("broadcast/root outside group", (D + "broadcast", G), PAIR + foreign, _lists, sizes=(3,))


def _asked_of_groups() -> Iterator[list[Asked]]:
    for name, text in {"sorted": PAIR, "unsorted": TURNED, "all": "_g = None; "}.items():
        who = "[dist.get_rank(_g), dist.get_world_size(_g)]"
        yield ask(f"get_rank/{name}", (D + "get_rank", D + "get_world_size", G), text + who, sizes=(3, 4))
        told = "[dist.get_process_group_ranks(_g), dist.get_global_rank(_g, 1), dist.get_group_rank(_g, 0)]"
        member = f"{told} if rank in (0, 2) else None"
        if name != "all":
            yield ask(
                f"get_process_group_ranks/{name}", (D + "get_process_group_ranks", G), text + member, sizes=(3, 4)
            )
    yield ask("new_group/not a member", G, "dist.new_group([0]) if rank else dist.new_group([0]) is None", sizes=(2, 3))
    yield ask("new_group/duplicates", G, "dist.new_group([0, 0])", sizes=(2,))
    yield ask("new_group/out of range", G, "dist.new_group([0, 9])", sizes=(2,))
    yield ask("new_group/empty", G, "dist.new_group([])", sizes=(2,))
    yield ask("get_group_rank/not in it", (D + "get_group_rank", G), PAIR + "dist.get_group_rank(_g, 1)", sizes=(3,))
    yield ask("get_global_rank/not in it", (D + "get_global_rank", G), PAIR + "dist.get_global_rank(_g, 7)", sizes=(3,))
    yield ask("is_initialized/yes", D + "is_initialized", "[dist.is_initialized(), dist.is_available()]")
    yield ask("get_backend/gloo", D + "get_backend", "str(dist.get_backend())", sizes=(1, 2))
    yield ask(
        "init_process_group/twice",
        D + "init_process_group",
        "dist.init_process_group('gloo')",
        sizes=(1, 2),
        match="twice",
    )
    ended = "dist.destroy_process_group(); "
    yield ask(
        "destroy_process_group/then a call",
        D + "destroy_process_group",
        ended + "dist.all_reduce(x)",
        one(),
        sizes=(1, 2),
        alone=True,
    )
    yield ask(
        "destroy_process_group/then is_initialized",
        D + "destroy_process_group",
        ended + "dist.is_initialized()",
        sizes=(1, 2),
        alone=True,
    )
    yield ask("barrier/all", D + "barrier", "dist.barrier()")
    yield ask("barrier/async", D + "barrier", "w = dist.barrier(async_op=True); [w, w.wait()]", sizes=(1, 2))
    yield ask("monitored_barrier/all", D + "monitored_barrier", "dist.monitored_barrier()", sizes=(1, 2, 3))


CALLS = [asked for family in (_within, _asked_of_groups) for several in family() for asked in several]
