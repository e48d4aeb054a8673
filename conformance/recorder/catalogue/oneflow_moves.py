"""OneFlow: broadcast, all_gather, gather, scatter, all_to_all, send and recv."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from collshim.conformance.recorder.asked import Asked, Inputs, ask, blank, part
from collshim.conformance.recorder.catalogue.oneflow_reductions import MOVED, REDUCED, C
from collshim.conformance.recorder.catalogue.torch_moves import exchanged, outs, ragged_exchange
from collshim.conformance.recorder.catalogue.torch_reductions import graded, listed, one
from collshim.conformance.recorder.sweep import SHAPES, Sweep, swept


def _broadcast() -> Iterator[list[Asked]]:
    api, from_0 = C + "broadcast", "flow.comm.broadcast(x, 0)"
    half = one((3,), "float16")
    yield ask("comm.broadcast/float16", api, "flow.comm.broadcast(x, 1)", half, sizes=(2,), alone=True)
    yield ask("comm.broadcast/view", api, "flow.comm.broadcast(x[1:2], 0)", one((3, 2)), sizes=(2,))
    leaf = "comm.broadcast/leaf that requires grad"
    yield ask(leaf, api, f"{from_0}; x.detach()", one(grad=True), sizes=(2,))
    yield ask("comm.broadcast/src is True", api, "flow.comm.broadcast(x, True)", one(), sizes=(2,))
    outside = "comm.broadcast/src out of range"
    yield ask(outside, api, "flow.comm.broadcast(x, 9)", one(), sizes=(2,), alone=True)
    cases = {
        "src is a float": "x, 0.0",
        "src is None": "x, None",
        "src is numpy": "x, np.int64(0)",
        "list": "[x], 0",
        "numpy": "np.ones(2), 0",
    }
    for what, text in cases.items():
        yield ask(f"comm.broadcast/{what}", api, f"flow.comm.broadcast({text})", one(), sizes=(1, 2))
    missing = "missing 1 required positional"
    yield ask("comm.broadcast/no src", api, "flow.comm.broadcast(x)", one(), sizes=(1, 2), match=missing)


GATHERED_GRADIENT = (
    "def _f(x):\n    outs = [None] * size\n    flow.comm.all_gather(outs, x)\n"
    "    return sum(one * (index + 1) for index, one in enumerate(outs))\ngradient(_f, x, dy)"
)


def _all_gather() -> Iterator[list[Asked]]:
    api, call = C + "all_gather", "flow.comm.all_gather(outs, x)"
    old = f"_old = list(outs); {call}; [one.sum() for one in _old]"
    yield ask("comm.all_gather/old entries", api, old, outs(), sizes=(1, 2, 3))
    yield ask("comm.all_gather/list of None", api, f"outs = [None] * size; {call}", one(), sizes=(1, 2, 3))
    yield ask("comm.all_gather/requires grad", api, call, outs(grad=True), sizes=(1, 2))
    yield ask("comm.all_gather/gradient", api, GATHERED_GRADIENT, graded())
    yield ask("comm.all_gather/list too short", api, call, outs(count=1), sizes=(2, 3))
    yield ask("comm.all_gather/empty list", api, "flow.comm.all_gather([], x)", outs(), sizes=(1, 2))
    wrong = {
        "tuple": "tuple(outs), x",
        "tensor for list": "x, x",
        "number": "outs, 3",
        "list": "outs, [x]",
        "numpy": "outs, np.ones(2)",
    }
    for what, text in wrong.items():
        yield ask(f"comm.all_gather/{what}", api, f"flow.comm.all_gather({text})", outs(), sizes=(1, 2))
    yield ask("comm.all_gather/shapes differ", api, call, _growing, sizes=(2,), alone=True)


def _growing(rank: int, size: int) -> Inputs:
    return {"x": part(rank, (rank + 1,)), "outs": [blank((1,))] * size}


def _gather() -> Iterator[list[Asked]]:
    api = C + "gather"
    yield ask("comm.gather/list on all ranks", api, "flow.comm.gather(x, outs)", outs(), sizes=(2, 3))
    yield ask("comm.gather/dst is text", api, "flow.comm.gather(x, outs, 'x')", outs(), sizes=(1, 2))
    yield ask("comm.gather/dst out of range", api, "flow.comm.gather(x, outs, 9)", outs(), sizes=(2,))
    yield ask("comm.gather/no list anywhere", api, "flow.comm.gather(x)", outs(), sizes=(1, 2))
    yield ask("comm.gather/list of None", api, "outs = [None] * size; flow.comm.gather(x, outs, 0)", one(), sizes=(2,))
    yield ask("comm.gather/list too short", api, "flow.comm.gather(x, outs)", outs(count=1), sizes=(2,), alone=True)
    for what, given_ in {"list": "[x], outs", "number": "3, outs"}.items():
        yield ask(f"comm.gather/{what}", api, f"flow.comm.gather({given_})", outs(), sizes=(1, 2))
    yield ask("comm.gather/tuple", api, "flow.comm.gather(x, tuple(outs))", outs(), sizes=(1, 2), alone=True)


def _scatter() -> Iterator[list[Asked]]:
    api = C + "scatter"
    text = "flow.comm.scatter(out, parts if rank == 0 else None)"
    yield ask("comm.scatter/list on all ranks", api, "flow.comm.scatter(out, parts)", listed(), sizes=(2, 3))
    yield ask(
        "comm.scatter/wrong list off the root",
        api,
        "flow.comm.scatter(out, parts if rank == 0 else [out])",
        listed(),
        sizes=(2,),
    )
    yield ask(
        "comm.scatter/view",
        api,
        "base = out; flow.comm.scatter(base[1:2], [one[1:2] for one in parts] if rank == 0 else None)",
        listed(),
        sizes=(1, 2),
    )
    yield ask("comm.scatter/transposed", api, text, listed(layout="transposed"), sizes=(2,))
    for what, given_ in {
        "number": "3, parts",
        "src is a float": "out, parts, 0.0",
        "src is text": "out, parts, 'a'",
    }.items():
        yield ask(f"comm.scatter/{what}", api, f"flow.comm.scatter({given_})", listed(), sizes=(1, 2))
    for what, given_ in {
        "no list on root": "out",
        "list too short": "out, parts[:-1]",
        "tuple": "out, tuple(parts)",
    }.items():
        yield ask(
            f"comm.scatter/{what}", api, f"flow.comm.scatter({given_}, src=rank)", listed(), sizes=(1, 2), alone=True
        )
    wrong = "flow.comm.scatter(out, [one[:1] for one in parts], src=rank)"
    yield ask(
        "comm.scatter/shapes differ", api, wrong, listed(), sizes=(2,), alone=True, match="invalid tensor size at index"
    )


def _all_to_all() -> Iterator[list[Asked]]:
    api, call = C + "all_to_all", "flow.comm.all_to_all(outs, parts)"
    yield ask("comm.all_to_all/ragged", api, call, ragged_exchange, sizes=(1, 2, 3))
    for what, text in {
        "tuple": "tuple(outs), parts",
        "tuples": "outs, tuple(parts)",
        "tensor": "outs, parts[0]",
        "list too short": "outs, parts[:-1]",
        "outputs too short": "outs[:-1], parts",
    }.items():
        yield ask(f"comm.all_to_all/{what}", api, f"flow.comm.all_to_all({text})", exchanged((2,)), sizes=(1, 2))


def _point_to_point() -> Iterator[list[Asked]]:
    both = (C + "send", C + "recv")
    for dtype in REDUCED:
        yield ask(
            f"comm.send/{dtype}",
            both,
            "flow.comm.send(x, 1) if rank == 0 else flow.comm.recv(0) if rank == 1 else None",
            one((3,), dtype),
            sizes=(2, 3),
        )
    for name, shape in SHAPES.items():
        if name != "empty":
            yield ask(
                f"comm.send/{name}",
                both,
                "flow.comm.send(x, 1) if rank == 0 else flow.comm.recv(0)",
                one(shape),
                sizes=(2,),
            )
    told = (
        "flow.comm.send(x, 1, send_meta=False) if rank == 0 else "
        "flow.comm.recv(0, shape=(2, 3), dtype=flow.float32, device='cpu')"
    )
    yield ask("comm.send/without meta", both, told, one(), sizes=(2,))
    out = "flow.comm.send(x, 1) if rank == 0 else flow.comm.recv(0, out=x)"
    yield ask("comm.send/into out", both, out, one(), sizes=(2,))
    yield ask(
        "comm.send/transposed",
        both,
        "flow.comm.send(x, 1) if rank == 0 else flow.comm.recv(0)",
        one(layout="transposed"),
        sizes=(2,),
    )
    chain = "(flow.comm.recv(rank - 1) if rank else None, flow.comm.send(x, rank + 1) if rank + 1 < size else None)"
    yield ask("comm.send/chain", both, chain, one(), sizes=(2, 3, 4))
    for what, text in {
        "dst is text": "x, 'a'",
        "dst is a float": "x, 0.5",
        "list": "[x], 0",
        "number": "3, 0",
        "None": "None, 0",
    }.items():
        yield ask(f"comm.send/{what}", C + "send", f"flow.comm.send({text})", one(), sizes=(1, 2))
    for what, text in {
        "src is text": "'a'",
        "src is a float": "0.5",
        "shape alone": "0, shape=(2, 3)",
        "no device": "0, shape=(2, 3), dtype=flow.float32",
    }.items():
        yield ask(f"comm.recv/{what}", C + "recv", f"flow.comm.recv({text})", one(), sizes=(1, 2))
    yield ask("comm.barrier/all", C + "barrier", "flow.comm.barrier()")
    yield ask(
        "env/ranks",
        ("oneflow.env.get_rank", "oneflow.env.get_world_size"),
        "[flow.env.get_rank(), flow.env.get_world_size(), flow.env.get_local_rank(), flow.env.get_node_size()]",
    )


_TO_LISTS = Sweep(sizes=(1, 2, 3), dtypes=MOVED, dtype_sizes=(2,), roots=range(2), default_root=True)
_SWEPT = {
    "broadcast": Sweep(sizes=(2, 3), dtypes=REDUCED, dtype_root=1, layout_sizes=(2,), roots=range(4)),
    "all_gather": Sweep(dtypes=MOVED, layout_sizes=(2,)),
    "gather": _TO_LISTS,
    "scatter": replace(_TO_LISTS, dtypes=REDUCED),
    "all_to_all": Sweep(dtypes=REDUCED, dtype_sizes=(2,)),
}
CALLS: list[Asked] = swept(C, "flow.comm.", "comm.", _SWEPT) + [
    asked
    for family in (_broadcast, _all_gather, _gather, _scatter, _all_to_all, _point_to_point)
    for several in family()
    for asked in several
]
