"""torch.distributed: broadcast, the gathers and scatters, all_to_all, send and recv, objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from collshim.conformance.recorder.asked import Asked, Calls, Inputs, blank, joined, part
from collshim.conformance.recorder.catalogue.torch_reductions import DIST, DTYPES, WAITED, listed, one, shaped
from collshim.conformance.recorder.sweep import SHAPES, WHOLE_SHAPES, Sweep, swept


def outs(
    shape: Sequence[int] = (2, 3), dtype: str = "float32", count: int | None = None, **more: object
) -> Callable[[int, int], Inputs]:
    """Give each rank an array ``x`` and a list ``outs`` to fill, with one array per rank, or ``count``."""
    return lambda rank, size: {
        "x": part(rank, shape, dtype, **more),  # type: ignore[arg-type]
        "outs": [blank(shape, dtype) for _ in range(size if count is None else count)],
    }


def _broadcast() -> Iterator[list[Asked]]:
    yield DIST("broadcast", "async", "x, 0, async_op=True", one(), text=WAITED)
    yield DIST("broadcast", "group_src", "x, group_src=1", one(), (2, 3))
    yield DIST("broadcast", "leaf that requires grad", "x, 0", one(grad=True), (2,))
    wrong: Calls = {
        "no src": ("x", "Must specify"),
        "src and group_src": ("x, 0, group_src=0", "both"),
        "src out of range": "x, 7",
    }
    yield DIST.each("broadcast", wrong, one(), (1, 2))
    yield DIST("broadcast", "not a tensor", "[1], 0", sizes=(1, 2))


def _all_gather() -> Iterator[list[Asked]]:
    yield DIST("all_gather", "async", "outs, x, async_op=True", outs(), (1, 2, 3), text=WAITED)
    yield DIST("all_gather", "list too short", "outs, x", outs(count=1), (2, 3))
    yield DIST("all_gather", "list too long", "outs, x", outs(count=3), (2,))
    yield DIST("all_gather", "empty list", "outs, x", outs(count=0), (2,))
    yield DIST("all_gather", "other shape, as many elements", "outs, x.reshape(3, 2)", outs(), (2,))
    wrong = {
        "tuple": "tuple(outs), x",
        "dtypes differ": "outs, x.int()",
        "not a tensor": "outs, [1.0]",
        "list of None": "[None] * size, x",
    }
    yield DIST.each("all_gather", wrong, outs(), (1, 2))
    yield DIST("all_gather", "ragged", "outs, x", _ragged, (2, 3))


def _ragged(rank: int, size: int) -> Inputs:
    return {"x": part(rank, (rank + 1, 2)), "outs": [blank((index + 1, 2)) for index in range(size)]}


def _all_gather_single() -> Iterator[list[Asked]]:
    for name in ("all_gather_into_tensor", "all_gather_single"):
        yield DIST(name, "async", "out, x, async_op=True", into((2, 3)), (1, 2), text=WAITED)
        yield DIST(name, "stacked", "out, x", _stacked, (1, 2, 3))
        yield DIST(name, "0d", "out, x", shaped({"x": (), "out": (2,)}), (2,))
        yield DIST(name, "output too large", "out, x", shaped({"x": (2,), "out": (5,)}), (2,))
        wrong = {"dtypes differ": "out, x.int()", "list for tensor": "[out], x"}
        yield DIST.each(name, wrong, into((2, 3)), (1, 2))


def into(shape: Sequence[int], dtype: str = "float32") -> Callable[[int, int], Inputs]:
    """Give each rank an array ``x`` and one ``out`` for all ranks' arrays end to end."""
    return lambda rank, size: {"x": part(rank, shape, dtype), "out": blank((size * shape[0], *shape[1:]), dtype)}


def _stacked(rank: int, size: int) -> Inputs:
    return {"x": part(rank), "out": blank((size, 2, 3))}


def _gather() -> Iterator[list[Asked]]:
    on_root = "x, outs if rank == 0 else None"
    yield DIST("gather", "async", f"{on_root}, async_op=True", outs(), (1, 2), text=WAITED)
    yield DIST("gather", "group_dst", "x, outs if rank == 1 else None, group_dst=1", outs(), (2, 3))
    yield DIST("gather", "list on all ranks", "x, outs, dst=0", outs(), (2,), alone=True)
    yield DIST("gather", "no list on root", "x, dst=0", outs(), (1, 2), alone=True)
    yield DIST("gather", "list too short", on_root, outs(count=1), (2,), alone=True)
    wrong: Calls = {"dst and group_dst": ("x, outs, 0, group_dst=0", "both"), "not a tensor": "[1.0], outs"}
    yield DIST.each("gather", wrong, outs(), (1, 2))


def _scatter() -> Iterator[list[Asked]]:
    on_root = "out, parts if rank == 0 else None"
    yield DIST("scatter", "async", f"{on_root}, async_op=True", listed(), (1, 2), text=WAITED)
    yield DIST("scatter", "group_src", "out, parts if rank == 1 else None, group_src=1", listed(), (2, 3))
    yield DIST("scatter", "list on all ranks", "out, parts", listed(), (2,), alone=True)
    yield DIST("scatter", "no list on root", "out", listed(), (1, 2), alone=True)
    yield DIST("scatter", "list too short", on_root, listed(count=1), (2,), alone=True)
    yield DIST("scatter", "dtypes differ", on_root.replace("out", "out.int()"), listed(), (1,))
    yield DIST("scatter", "not a tensor", "[1.0], parts", listed(), (1, 2))


def _all_to_all() -> Iterator[list[Asked]]:
    yield DIST("all_to_all", "async", "outs, parts, async_op=True", exchanged((2,)), (1, 2), text=WAITED)
    yield DIST("all_to_all", "ragged", "outs, parts", ragged_exchange, (1, 2, 3))
    yield DIST("all_to_all", "not a list", "outs, parts[0]", exchanged((2,)), (1, 2))
    yield DIST("all_to_all", "dtypes differ", "outs, [p.int() for p in parts]", exchanged((2,)), (2,))
    splits = "out, x, [rank + 1] * size, [peer + 1 for peer in range(size)]"
    yield DIST("all_to_all_single", "splits", splits, _split)
    yield DIST("all_to_all_single", "wrong splits", "out, x, [1] * size, [9] * size", _whole((2,)), (2,))
    yield DIST("all_to_all_single", "not a tensor", "out, [x]", _whole((2,)), (1, 2))
    yield DIST("all_to_all_single", "not contiguous", "out, x.t().contiguous().t()", _whole((2, 3)), (2,))


def exchanged(shape: Sequence[int], dtype: str = "float32") -> Callable[[int, int], Inputs]:
    """Give each rank lists ``parts`` and ``outs``, one array per rank."""
    return lambda rank, size: {
        "parts": [part(rank, shape, dtype, start=1 + 40 * peer) for peer in range(size)],
        "outs": [blank(shape, dtype) for _ in range(size)],
    }


def ragged_exchange(rank: int, size: int) -> Inputs:
    """Give each rank lists ``parts`` and ``outs`` of arrays whose length grows with both ranks."""
    parts = [part(rank, (rank + peer + 1,), start=1 + 40 * peer) for peer in range(size)]
    return {"parts": parts, "outs": [blank((rank + peer + 1,)) for peer in range(size)]}


def _whole(shape: Sequence[int]) -> Callable[[int, int], Inputs]:
    return lambda rank, size: shaped(dict.fromkeys(("x", "out"), (size * shape[0], *shape[1:])))(rank, size)


def _split(rank: int, size: int) -> Inputs:
    return {"x": part(rank, (size * (size + 1) // 2, 2)), "out": blank((size * (rank + 1), 2))}


def _point_to_point() -> Iterator[list[Asked]]:
    text, recv = "{} if rank == 0 else dist.recv(out, 0) if rank == 1 else None", (DIST.path + "recv",)
    for dtype in ("float32", "int64", "bool", "complex64", "int16"):
        yield DIST("send", dtype, "x, 1", _pair((2, 3), dtype), (2, 3), text=text, also=recv)
    for name, shape in SHAPES.items():
        yield DIST("send", name, "x, 1", _pair(shape), (2,), text=text, also=recv)
    yield DIST("send", "any source", "x, 1", _pair(), (2,), text=text.replace("out, 0", "out"), also=recv)
    tags = "[{}, dist.send(x + 1, 1, tag=8)] if rank == 0 else [dist.recv(out, 0, tag=7), dist.recv(x, 0, tag=8)]"
    yield DIST("send", "tags", "x, 1, tag=7", _pair(), (2,), text=tags, also=recv)
    ring = "w = {}; v = dist.irecv(out, (rank - 1) % size); [w.wait(), v.wait(), w, v]"
    yield DIST("isend", "ring", "x, (rank + 1) % size", _pair(), (2, 3, 4), text=ring, also=(DIST.path + "irecv",))
    batch = "[dist.P2POp(dist.isend, x, (rank + 1) % size), dist.P2POp(dist.irecv, out, (rank - 1) % size)]"
    waits, also = "[w.wait() for w in {}]", (DIST.path + "P2POp",)
    yield DIST("batch_isend_irecv", "ring", batch, _pair(), (2, 3), text=waits, also=also)
    yield DIST("batch_isend_irecv", "empty", "[]", sizes=(2,))
    yield DIST("P2POp", "not an op", "'isend', x, 0", _pair(), (2,))
    yield DIST("send", "to itself", "x, rank", _pair(), (1, 2))
    yield DIST("recv", "from itself", "x, rank", _pair(), (1, 2))
    yield DIST("send", "not a tensor", "[1.0], 1", sizes=(2,))
    yield DIST("recv", "not a tensor", "None, 0", sizes=(2,))
    yield DIST.each("send", {"dst and group_dst": ("x, 1, group_dst=1", "both"), "no dst": "x"}, _pair(), (2,))


def _pair(shape: Sequence[int] = (2, 3), dtype: str = "float32") -> Callable[[int, int], Inputs]:
    return lambda rank, size: {"x": part(rank, shape, dtype), "out": blank(shape, dtype)}


def _objects() -> Iterator[list[Asked]]:
    thing = "{'rank': rank, 'text': 'a' * (rank + 1), 'set': None}"
    lists, shared = "found = [None] * size; {}", "found = [rank, 'text' * rank, {rank: (1, 2)}]; {}"
    yield DIST("all_gather_object", "dict", f"found, {thing}", text=lists)
    yield DIST("gather_object", "to 0", f"{thing}, found if rank == 0 else None", text=lists)
    yield DIST("gather_object", "no list on root", "1, None", sizes=(1, 2), alone=True)
    yield DIST("broadcast_object_list", "from the last", "found, src=size - 1", text=shared)
    yield DIST("broadcast_object_list", "default src", "found", sizes=(2,), text=shared)
    scattered = "found, [('to', peer) for peer in range(size)] if rank == 0 else None"
    yield DIST("scatter_object_list", "from 0", scattered, text="found = [None]; {}")
    words = "Expected argument scatter_object_output_list"
    yield DIST("scatter_object_list", "empty output", "[], [1] * size", sizes=(1, 2), match=words)
    pair = "found = ['a', 1] if rank == 0 else [None, None]; {} if rank == 0 else dist.recv_object_list(found, 0)"
    yield DIST("send_object_list", "pair", "found, 1", sizes=(2,), text=pair, also=(DIST.path + "recv_object_list",))


_MOVED = ("float64", "float16", "int64", "uint8", "bool", "complex64")
_SINGLE = Sweep(shapes=WHOLE_SHAPES, dtypes=_MOVED, dtype_shape=(2,))
_TO_LISTS = Sweep(sizes=(1, 2, 3), dtypes=_MOVED, dtype_sizes=(2,), roots=range(2), default_root=True)
_SWEPT = {
    "broadcast": Sweep(sizes=(2, 3), dtypes=DTYPES, dtype_root=1, layout_sizes=(2, 3), roots=range(3)),
    "all_gather": Sweep(dtypes=DTYPES, layout_sizes=(2, 3)),
    "all_gather_into_tensor": _SINGLE,
    "all_gather_single": _SINGLE,
    "gather": _TO_LISTS,
    "scatter": _TO_LISTS,
    "all_to_all": Sweep(dtypes=_MOVED, dtype_sizes=(2,)),
    "all_to_all_single": replace(_SINGLE, dtype_sizes=(2,)),
}
CALLS = swept(DIST, _SWEPT) + joined(
    *(_broadcast, _all_gather, _all_gather_single, _gather, _scatter, _all_to_all, _point_to_point, _objects)
)
