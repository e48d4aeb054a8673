"""torch.distributed: broadcast, the gathers and scatters, all_to_all, send and recv, objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from collshim.conformance.recorder.asked import Asked, Inputs, ask, blank, part
from collshim.conformance.recorder.catalogue.torch_reductions import DTYPES, D, listed, one
from collshim.conformance.recorder.sweep import SHAPES, WHOLE_SHAPES, Sweep, swept


def outs(
    shape: Sequence[int] = (2, 3), dtype: str = "float32", count: int | None = None, **more: object
) -> Callable[[int, int], Inputs]:
    """Each rank has an array ``x`` and a list ``outs`` to be filled, one per rank or ``count``."""
    return lambda rank, size: {
        "x": part(rank, shape, dtype, **more),  # type: ignore[arg-type]
        "outs": [blank(shape, dtype) for _ in range(size if count is None else count)],
    }


def _broadcast() -> Iterator[list[Asked]]:
    api = D + "broadcast"
    yield ask("broadcast/async", api, "w = dist.broadcast(x, 0, async_op=True); [w, w.wait()]", one())
    yield ask("broadcast/group_src", api, "dist.broadcast(x, group_src=1)", one(), sizes=(2, 3))
    yield ask("broadcast/leaf that requires grad", api, "dist.broadcast(x, 0)", one(grad=True), sizes=(2,))
    yield ask("broadcast/no src", api, "dist.broadcast(x)", one(), sizes=(1, 2), match="Must specify")
    yield ask(
        "broadcast/src and group_src", api, "dist.broadcast(x, 0, group_src=0)", one(), sizes=(1, 2), match="both"
    )
    yield ask("broadcast/not a tensor", api, "dist.broadcast([1], 0)", sizes=(1, 2))
    yield ask("broadcast/src out of range", api, "dist.broadcast(x, 7)", one(), sizes=(1, 2))


def _all_gather() -> Iterator[list[Asked]]:
    api, call = D + "all_gather", "dist.all_gather(outs, x)"
    yield ask(
        "all_gather/async", api, "w = dist.all_gather(outs, x, async_op=True); [w, w.wait()]", outs(), sizes=(1, 2, 3)
    )
    yield ask("all_gather/tuple", api, "dist.all_gather(tuple(outs), x)", outs(), sizes=(1, 2))
    yield ask("all_gather/list too short", api, call, outs(count=1), sizes=(2, 3))
    yield ask("all_gather/list too long", api, call, outs(count=3), sizes=(2,))
    yield ask("all_gather/empty list", api, call, outs(count=0), sizes=(2,))
    yield ask("all_gather/dtypes differ", api, "dist.all_gather(outs, x.int())", outs(), sizes=(1, 2))
    yield ask(
        "all_gather/other shape, as many elements", api, "dist.all_gather(outs, x.reshape(3, 2))", outs(), sizes=(2,)
    )
    yield ask("all_gather/not a tensor", api, "dist.all_gather(outs, [1.0])", outs(), sizes=(1, 2))
    yield ask("all_gather/list of None", api, "dist.all_gather([None] * size, x)", outs(), sizes=(1, 2))
    yield ask("all_gather/ragged", api, call, _ragged, sizes=(2, 3))


def _ragged(rank: int, size: int) -> Inputs:
    return {"x": part(rank, (rank + 1, 2)), "outs": [blank((index + 1, 2)) for index in range(size)]}


def _all_gather_single() -> Iterator[list[Asked]]:
    for name in ("all_gather_into_tensor", "all_gather_single"):
        api, call = D + name, f"dist.{name}(out, x)"
        yield ask(
            f"{name}/async", api, f"w = dist.{name}(out, x, async_op=True); [w, w.wait()]", into((2, 3)), sizes=(1, 2)
        )
        yield ask(f"{name}/stacked", api, call, _stacked, sizes=(1, 2, 3))
        yield ask(f"{name}/0d", api, call, lambda rank, size: {"x": part(rank, ()), "out": blank((size,))}, sizes=(2,))
        yield ask(
            f"{name}/output too large",
            api,
            call,
            lambda rank, size: {"x": part(rank, (2,)), "out": blank((5,))},
            sizes=(2,),
        )
        yield ask(f"{name}/dtypes differ", api, f"dist.{name}(out, x.int())", into((2, 3)), sizes=(1, 2))
        yield ask(f"{name}/list for tensor", api, f"dist.{name}([out], x)", into((2, 3)), sizes=(1, 2))


def into(shape: Sequence[int], dtype: str = "float32") -> Callable[[int, int], Inputs]:
    """Each rank has an array ``x`` and one ``out`` for all ranks' behind each other."""
    return lambda rank, size: {"x": part(rank, shape, dtype), "out": blank((size * shape[0], *shape[1:]), dtype)}


def _stacked(rank: int, size: int) -> Inputs:
    return {"x": part(rank), "out": blank((size, 2, 3))}


def _gather() -> Iterator[list[Asked]]:
    api = D + "gather"
    text = "dist.gather(x, outs if rank == 0 else None)"
    yield ask("gather/async", api, f"w = {text[:-1]}, async_op=True); [w, w.wait()]", outs(), sizes=(1, 2))
    yield ask("gather/group_dst", api, "dist.gather(x, outs if rank == 1 else None, group_dst=1)", outs(), sizes=(2, 3))
    yield ask("gather/list on all ranks", api, "dist.gather(x, outs, dst=0)", outs(), sizes=(2,), alone=True)
    yield ask("gather/no list on root", api, "dist.gather(x, dst=0)", outs(), sizes=(1, 2), alone=True)
    yield ask("gather/list too short", api, text, outs(count=1), sizes=(2,), alone=True)
    yield ask(
        "gather/dst and group_dst", api, "dist.gather(x, outs, 0, group_dst=0)", outs(), sizes=(1, 2), match="both"
    )
    yield ask("gather/not a tensor", api, "dist.gather([1.0], outs)", outs(), sizes=(1, 2))


def _scatter() -> Iterator[list[Asked]]:
    api = D + "scatter"
    text = "dist.scatter(out, parts if rank == 0 else None)"
    yield ask("scatter/async", api, f"w = {text[:-1]}, async_op=True); [w, w.wait()]", listed(), sizes=(1, 2))
    yield ask(
        "scatter/group_src", api, "dist.scatter(out, parts if rank == 1 else None, group_src=1)", listed(), sizes=(2, 3)
    )
    yield ask("scatter/list on all ranks", api, "dist.scatter(out, parts)", listed(), sizes=(2,), alone=True)
    yield ask("scatter/no list on root", api, "dist.scatter(out)", listed(), sizes=(1, 2), alone=True)
    yield ask("scatter/list too short", api, text, listed(count=1), sizes=(2,), alone=True)
    yield ask("scatter/dtypes differ", api, text.replace("out,", "out.int(),"), listed(), sizes=(1,))
    yield ask("scatter/not a tensor", api, "dist.scatter([1.0], parts)", listed(), sizes=(1, 2))


def _all_to_all() -> Iterator[list[Asked]]:
    api, call = D + "all_to_all", "dist.all_to_all(outs, parts)"
    yield ask(
        "all_to_all/async",
        api,
        "w = dist.all_to_all(outs, parts, async_op=True); [w, w.wait()]",
        exchanged((2,)),
        sizes=(1, 2),
    )
    yield ask("all_to_all/ragged", api, call, ragged_exchange, sizes=(1, 2, 3))
    yield ask("all_to_all/not a list", api, "dist.all_to_all(outs, parts[0])", exchanged((2,)), sizes=(1, 2))
    yield ask(
        "all_to_all/dtypes differ", api, "dist.all_to_all(outs, [p.int() for p in parts])", exchanged((2,)), sizes=(2,)
    )
    single = D + "all_to_all_single"
    splits = "dist.all_to_all_single(out, x, [rank + 1] * size, [peer + 1 for peer in range(size)])"
    yield ask("all_to_all_single/splits", single, splits.replace("out, x,", "out, x,"), _split, sizes=(1, 2, 3, 4))
    yield ask(
        "all_to_all_single/wrong splits",
        single,
        "dist.all_to_all_single(out, x, [1] * size, [9] * size)",
        _whole((2,)),
        sizes=(2,),
    )
    yield ask("all_to_all_single/not a tensor", single, "dist.all_to_all_single(out, [x])", _whole((2,)), sizes=(1, 2))
    yield ask(
        "all_to_all_single/not contiguous",
        single,
        "dist.all_to_all_single(out, x.t().contiguous().t())",
        _whole((2, 3)),
        sizes=(2,),
    )


def exchanged(shape: Sequence[int], dtype: str = "float32") -> Callable[[int, int], Inputs]:
    """Each rank has lists ``parts`` and ``outs``, one array per rank."""
    return lambda rank, size: {
        "parts": [part(rank, shape, dtype, start=1 + 40 * peer) for peer in range(size)],
        "outs": [blank(shape, dtype) for _ in range(size)],
    }


def ragged_exchange(rank: int, size: int) -> Inputs:
    """The same, with parts that are the longer the higher both ranks."""
    parts = [part(rank, (rank + peer + 1,), start=1 + 40 * peer) for peer in range(size)]
    return {"parts": parts, "outs": [blank((rank + peer + 1,)) for peer in range(size)]}


def _whole(shape: Sequence[int], dtype: str = "float32") -> Callable[[int, int], Inputs]:
    return lambda rank, size: {
        "x": part(rank, (size * shape[0], *shape[1:]), dtype),
        "out": blank((size * shape[0], *shape[1:]), dtype),
    }


def _split(rank: int, size: int) -> Inputs:
    return {"x": part(rank, (size * (size + 1) // 2, 2)), "out": blank((size * (rank + 1), 2))}


def _point_to_point() -> Iterator[list[Asked]]:
    both = (D + "send", D + "recv")
    text = "dist.send(x, 1) if rank == 0 else dist.recv(out, 0) if rank == 1 else None"
    for dtype in ("float32", "int64", "bool", "complex64", "int16"):
        yield ask(f"send/{dtype}", both, text, _pair((2, 3), dtype), sizes=(2, 3))
    for name, shape in SHAPES.items():
        yield ask(f"send/{name}", both, text, _pair(shape), sizes=(2,))
    yield ask("send/any source", both, text.replace("out, 0", "out"), _pair(), sizes=(2,))
    yield ask(
        "send/tags",
        both,
        "[dist.send(x, 1, tag=7), dist.send(x + 1, 1, tag=8)] if rank == 0 else "
        "[dist.recv(out, 0, tag=7), dist.recv(x, 0, tag=8)]",
        _pair(),
        sizes=(2,),
    )
    nonblocking = (
        "w = dist.isend(x, (rank + 1) % size); v = dist.irecv(out, (rank - 1) % size); [w.wait(), v.wait(), w, v]"
    )
    yield ask("isend/ring", (D + "isend", D + "irecv"), nonblocking, _pair(), sizes=(2, 3, 4))
    batch = (
        "[w.wait() for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, "
        "(rank + 1) % size), dist.P2POp(dist.irecv, out, (rank - 1) % size)])]"
    )
    yield ask("batch_isend_irecv/ring", (D + "batch_isend_irecv", D + "P2POp"), batch, _pair(), sizes=(2, 3))
    yield ask("batch_isend_irecv/empty", D + "batch_isend_irecv", "dist.batch_isend_irecv([])", sizes=(2,))
    yield ask("P2POp/not an op", D + "P2POp", "dist.P2POp('isend', x, 0)", _pair(), sizes=(2,))
    yield ask("send/to itself", D + "send", "dist.send(x, rank)", _pair(), sizes=(1, 2))
    yield ask("recv/from itself", D + "recv", "dist.recv(x, rank)", _pair(), sizes=(1, 2))
    yield ask("send/not a tensor", D + "send", "dist.send([1.0], 1)", sizes=(2,))
    yield ask("recv/not a tensor", D + "recv", "dist.recv(None, 0)", sizes=(2,))
    yield ask("send/dst and group_dst", D + "send", "dist.send(x, 1, group_dst=1)", _pair(), sizes=(2,), match="both")
    yield ask("send/no dst", D + "send", "dist.send(x)", _pair(), sizes=(2,))


def _pair(shape: Sequence[int] = (2, 3), dtype: str = "float32") -> Callable[[int, int], Inputs]:
    return lambda rank, size: {"x": part(rank, shape, dtype), "out": blank(shape, dtype)}


def _objects() -> Iterator[list[Asked]]:
    thing = "{'rank': rank, 'text': 'a' * (rank + 1), 'set': None}"
    gathered = f"found = [None] * size; dist.all_gather_object(found, {thing})"
    yield ask("all_gather_object/dict", D + "all_gather_object", gathered)
    yield ask(
        "gather_object/to 0",
        D + "gather_object",
        f"found = [None] * size; dist.gather_object({thing}, found if rank == 0 else None)",
    )
    yield ask(
        "gather_object/no list on root", D + "gather_object", "dist.gather_object(1, None)", sizes=(1, 2), alone=True
    )
    shared = "found = [rank, 'text' * rank, {rank: (1, 2)}]; dist.broadcast_object_list(found, src=size - 1)"
    yield ask("broadcast_object_list/from the last", D + "broadcast_object_list", shared)
    yield ask(
        "broadcast_object_list/default src",
        D + "broadcast_object_list",
        shared.replace(", src=size - 1", ""),
        sizes=(2,),
    )
    scattered = (
        "found = [None]; dist.scatter_object_list(found, [('to', peer) for peer in range(size)] if rank == 0 else None)"
    )
    yield ask("scatter_object_list/from 0", D + "scatter_object_list", scattered)
    yield ask(
        "scatter_object_list/empty output",
        D + "scatter_object_list",
        "dist.scatter_object_list([], [1] * size)",
        sizes=(1, 2),
        match="Expected argument scatter_object_output_list",
    )
    sent = (
        "found = ['a', 1] if rank == 0 else [None, None]; dist.send_object_list(found, "
        "1) if rank == 0 else dist.recv_object_list(found, 0)"
    )
    yield ask("send_object_list/pair", (D + "send_object_list", D + "recv_object_list"), sent, sizes=(2,))


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
CALLS = swept(D, "dist.", "", _SWEPT) + [
    asked
    for family in (
        *(_broadcast, _all_gather, _all_gather_single, _gather, _scatter, _all_to_all, _point_to_point, _objects),
    )
    for several in family()
    for asked in several
]
