"""OneFlow: broadcast, all_gather, gather, scatter, all_to_all, send and recv."""

from __future__ import annotations

from collections.abc import Iterator

from collshim.conformance.recorder.asked import Asked, Calls, Inputs, ask, blank, joined, part
from collshim.conformance.recorder.catalogue.oneflow_reductions import COMM
from collshim.conformance.recorder.catalogue.torch_moves import exchanged, outs, ragged_exchange
from collshim.conformance.recorder.catalogue.torch_reductions import MISSING, graded, listed, one
from collshim.conformance.recorder.sweep import SHAPES, Sweep, swept

_DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")


def _broadcast() -> Iterator[list[Asked]]:
    yield COMM("broadcast", "float16", "x, 1", one((3,), "float16"), (2,), alone=True)
    yield COMM("broadcast", "view", "x[1:2], 0", one((3, 2)), (2,))
    yield COMM("broadcast", "leaf that requires grad", "x, 0", one(grad=True), (2,), text="{}; x.detach()")
    yield COMM("broadcast", "src is True", "x, True", one(), (2,))
    yield COMM("broadcast", "src out of range", "x, 9", one(), (2,), alone=True)
    wrong: Calls = {
        "src is a float": "x, 0.0",
        "src is None": "x, None",
        "src is numpy": "x, np.int64(0)",
        "list": "[x], 0",
        "numpy": "np.ones(2), 0",
        "no src": ("x", MISSING),
    }
    yield COMM.each("broadcast", wrong, one(), (1, 2))


GATHERED_GRADIENT = (
    "def _f(x):\n    outs = [None] * size\n    {}\n"
    "    return sum(one * (index + 1) for index, one in enumerate(outs))\ngradient(_f, x, dy)"
)


def _all_gather() -> Iterator[list[Asked]]:
    old = "_old = list(outs); {}; [one.sum() for one in _old]"
    yield COMM("all_gather", "old entries", "outs, x", outs(), (1, 2, 3), text=old)
    yield COMM("all_gather", "list of None", "outs, x", one(), (1, 2, 3), text="outs = [None] * size; {}")
    yield COMM("all_gather", "requires grad", "outs, x", outs(grad=True), (1, 2))
    yield COMM("all_gather", "gradient", "outs, x", graded(), text=GATHERED_GRADIENT)
    yield COMM("all_gather", "list too short", "outs, x", outs(count=1), (2, 3))
    wrong = {
        "empty list": "[], x",
        "tuple": "tuple(outs), x",
        "tensor for list": "x, x",
        "number": "outs, 3",
        "list": "outs, [x]",
        "numpy": "outs, np.ones(2)",
    }
    yield COMM.each("all_gather", wrong, outs(), (1, 2))
    yield COMM("all_gather", "shapes differ", "outs, x", _growing, (2,), alone=True)


def _growing(rank: int, size: int) -> Inputs:
    return {"x": part(rank, (rank + 1,)), "outs": [blank((1,))] * size}


def _gather() -> Iterator[list[Asked]]:
    yield COMM("gather", "list on all ranks", "x, outs", outs(), (2, 3))
    yield COMM("gather", "dst out of range", "x, outs, 9", outs(), (2,))
    yield COMM("gather", "list of None", "x, outs, 0", one(), (2,), text="outs = [None] * size; {}")
    yield COMM("gather", "list too short", "x, outs", outs(count=1), (2,), alone=True)
    wrong = {"dst is text": "x, outs, 'x'", "no list anywhere": "x", "list": "[x], outs", "number": "3, outs"}
    yield COMM.each("gather", wrong, outs(), (1, 2))
    yield COMM("gather", "tuple", "x, tuple(outs)", outs(), (1, 2), alone=True)


def _scatter() -> Iterator[list[Asked]]:
    on_root = "out, parts if rank == 0 else None"
    yield COMM("scatter", "list on all ranks", "out, parts", listed(), (2, 3))
    yield COMM("scatter", "wrong list off the root", on_root.replace("None", "[out]"), listed(), (2,))
    view = "base[1:2], [one[1:2] for one in parts] if rank == 0 else None"
    yield COMM("scatter", "view", view, listed(), (1, 2), text="base = out; {}")
    yield COMM("scatter", "transposed", on_root, listed(layout="transposed"), (2,))
    wrong = {"number": "3, parts", "src is a float": "out, parts, 0.0", "src is text": "out, parts, 'a'"}
    yield COMM.each("scatter", wrong, listed(), (1, 2))
    lists = {"no list on root": "out", "list too short": "out, parts[:-1]", "tuple": "out, tuple(parts)"}
    lists = {what: f"{arguments}, src=rank" for what, arguments in lists.items()}
    yield COMM.each("scatter", lists, listed(), (1, 2), alone=True)
    shapes, words = "out, [one[:1] for one in parts], src=rank", "invalid tensor size at index"
    yield COMM("scatter", "shapes differ", shapes, listed(), (2,), words, alone=True)


def _all_to_all() -> Iterator[list[Asked]]:
    yield COMM("all_to_all", "ragged", "outs, parts", ragged_exchange, (1, 2, 3))
    wrong = {
        "tuple": "tuple(outs), parts",
        "tuples": "outs, tuple(parts)",
        "tensor": "outs, parts[0]",
        "list too short": "outs, parts[:-1]",
        "outputs too short": "outs[:-1], parts",
    }
    yield COMM.each("all_to_all", wrong, exchanged((2,)), (1, 2))


def _point_to_point() -> Iterator[list[Asked]]:
    recv, pair = (COMM.path + "recv",), "{} if rank == 0 else flow.comm.recv(0)"
    for dtype in _DTYPES:
        text = f"{pair} if rank == 1 else None"
        yield COMM("send", dtype, "x, 1", one((3,), dtype), (2, 3), text=text, also=recv)
    for name, shape in SHAPES.items():
        if name != "empty":
            yield COMM("send", name, "x, 1", one(shape), (2,), text=pair, also=recv)
    told = "{} if rank == 0 else flow.comm.recv(0, shape=(2, 3), dtype=flow.float32, device='cpu')"
    yield COMM("send", "without meta", "x, 1, send_meta=False", one(), (2,), text=told, also=recv)
    yield COMM("send", "into out", "x, 1", one(), (2,), text=pair.replace("(0", "(0, out=x"), also=recv)
    yield COMM("send", "transposed", "x, 1", one(layout="transposed"), (2,), text=pair, also=recv)
    chain = "(flow.comm.recv(rank - 1) if rank else None, {} if rank + 1 < size else None)"
    yield COMM("send", "chain", "x, rank + 1", one(), (2, 3, 4), text=chain, also=recv)
    sent = {"dst is text": "x, 'a'", "dst is a float": "x, 0.5", "list": "[x], 0", "number": "3, 0", "None": "None, 0"}
    yield COMM.each("send", sent, one(), (1, 2))
    received = {
        "src is text": "'a'",
        "src is a float": "0.5",
        "shape alone": "0, shape=(2, 3)",
        "no device": "0, shape=(2, 3), dtype=flow.float32",
    }
    yield COMM.each("recv", received, one(), (1, 2))
    yield COMM("barrier", "all")
    ranks = "[flow.env.get_rank(), flow.env.get_world_size(), flow.env.get_local_rank(), flow.env.get_node_size()]"
    yield ask("env/ranks", ("oneflow.env.get_rank", "oneflow.env.get_world_size"), ranks)


_TO_LISTS = Sweep(sizes=(1, 2, 3), dtype_sizes=(2,), roots=range(2), default_root=True)
_SWEPT = {
    "broadcast": Sweep(sizes=(2, 3), dtype_root=1, layout_sizes=(2,), roots=range(4)),
    "all_gather": Sweep(layout_sizes=(2,)),
    "gather": _TO_LISTS,
    "scatter": _TO_LISTS,
    "all_to_all": Sweep(dtypes=_DTYPES, dtype_sizes=(2,)),
}
CALLS = swept(COMM, _SWEPT) + joined(_broadcast, _all_gather, _gather, _scatter, _all_to_all, _point_to_point)
