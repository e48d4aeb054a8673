"""MindSpore: ``mint.distributed`` and ``ops.communication``, which write into their arguments, as torch does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collshim.conformance.recorder.asked import SIZES, Asked, Calls, Inputs, Module, blank, joined, part
from collshim.conformance.recorder.catalogue.mindspore_comm import DTYPES
from collshim.conformance.recorder.catalogue.torch_reductions import graded, one
from collshim.conformance.recorder.sweep import SHAPES, Sweep, swept

MINT = Module("mindspore.mint.distributed.", "dist.", "mint.distributed.")
OPS = Module("mindspore.ops.communication.", "opc.", "ops.communication.")


def lists(shape: Sequence[int] = (2, 3), dtype: str = "float32", count: int = 0) -> Callable[[int, int], Inputs]:
    """Return an array ``x``, an output ``out``, and lists ``outs`` and ``parts`` of one array per rank or ``count``."""
    return lambda rank, size: {
        "x": part(rank, shape, dtype),
        "out": blank(shape, dtype),
        "outs": [blank(shape, dtype) for _ in range(count or size)],
        "parts": [part(rank, shape, dtype, start=1 + 40 * peer) for peer in range(count or size)],
    }


def wholes(rank: int, size: int) -> Inputs:
    """Return a whole array and a part, with an output for each."""
    return {"x": part(rank), "whole": part(rank, (2 * size, 3)), "out": blank(), "into": blank((2 * size, 3))}


FORMS = {
    "all_reduce": ("x", lists()),
    "all_gather": ("outs, x", lists()),
    "all_gather_into_tensor": ("into, x", wholes),
    "reduce_scatter": ("out, parts", lists()),
    "reduce_scatter_tensor": ("out, whole", wholes),
    "reduce": ("x, 0", lists()),
    "broadcast": ("x, 0", lists()),
    "gather": ("x, outs, 0", lists()),
    "scatter": ("out, parts, 0", lists()),
    "all_to_all": ("outs, parts", lists()),
    "all_to_all_single": ("into, whole", wholes),
    "barrier": ("", lists()),
}


def _forms() -> Iterator[list[Asked]]:
    for module in (MINT, OPS):
        for name, (arguments, inputs) in FORMS.items():
            yield module(name, "all", arguments, inputs, SIZES if module is MINT else (2, 3))
            later = f"{arguments}, async_op=True".removeprefix(", ")
            yield module(name, "async", later, inputs, (2,), text="h = {}; h.wait() if h else None; h")


def _values() -> Iterator[list[Asked]]:
    ops = ("sum", "prod", "min", "max", "avg")
    yield MINT.each("all_reduce", {op: f"x, op='{op}'" for op in ops}, one(), (2, 3))
    for dtype in DTYPES:
        yield MINT("all_gather", dtype, "outs, x", lists((3,), dtype), (2,))
    for name, shape in SHAPES.items():
        yield MINT("all_gather", name, "outs, x", lists(shape), (1, 2, 3))
    for root in (1, 2):
        yield MINT("gather", f"to {root}", f"x, outs, {root}", lists(), range(root + 1, 5))
        yield MINT("scatter", f"from {root}", f"out, parts, {root}", lists(), range(root + 1, 5))
    text = "def _f(x):\n    y = x * 2\n    {}\n    return y\ngradient(_f, x, dy)"
    yield MINT("all_reduce", "gradient", "y", graded(), (1, 2), text=text)
    yield MINT("all_gather", "ragged", "outs, x", _ragged, (2,), alone=True)


def _whole_numbers(rank: int, size: int) -> Inputs:
    return {"y": part(rank, dtype="int32"), "outs": [blank() for _ in range(size)]}


def _ragged(rank: int, size: int) -> Inputs:
    return {"x": part(rank, (rank + 1,)), "outs": [blank((peer + 1,)) for peer in range(size)]}


_COUNT = "list tensor len must be equal to group rank size"
_REFUSED: dict[str, Calls] = {
    "all_reduce": {
        "unknown op": ("x, op='foo'", "must be one of sum, prod, min, max, avg"),
        "not a tensor": "1",
        "group is an int": ("x, group=1", "must be type of string"),
        "async_op is an int": ("x, async_op=1", "must be a bool"),
    },
    "all_gather": {
        "empty list": ("[], x", _COUNT),
        "shapes differ": ("[one.reshape(3, 2) for one in outs], x", "output shape should be"),
        "list of numbers": ("[1] * size, x", "Expected tensor"),
    },
    "broadcast": {
        "src is text": ("x, 'a'", "src must be int"),
        "no src": ("x", "missing 1 required positional"),
        "src out of range": ("x, 99", "99"),
    },
    "scatter": {"no list off the root": "out, parts if rank == 0 else None"},
    "gather": {"no list anywhere": ("x, None", "Expected list or tuple")},
    "send": {"to itself": ("x, rank", "Invalid destination rank"), "dst is text": "x, 'a'"},
    "recv": {"src is text": "x, 'a'"},
    "batch_isend_irecv": {"empty": "[]"},
    "P2POp": {"unknown op": "'foo', x, 0"},
    "all_to_all_single": {"indivisible": "out.reshape(-1)[:5], x.reshape(-1)[:5]"},
    "get_backend": {"group is an int": ("1", "must be type of string or None")},
    "get_rank": {"unknown group": "'nope'"},
    "get_world_size": {"unknown group": "'nope'"},
    "get_group_rank": {"unknown group": "'nope', 0"},
    "new_group": {"duplicates": ("[0, 0]", "has duplicate data"), "tuple": "(0, 1)"},
}


def _refusals() -> Iterator[list[Asked]]:
    for name, calls in _REFUSED.items():
        yield MINT.each(name, calls, lists(), (2,))
    for name in ("all_gather", "scatter", "gather"):
        yield MINT(name, "list too long", FORMS[name][0].removesuffix(", 0"), lists(count=3), (2,), _COUNT)
    yield MINT("all_gather", "dtypes differ", "outs, y", _whole_numbers, (2,), "output dtype should be")


def _messages() -> Iterator[list[Asked]]:
    for name, text in {
        "send": "{} if rank == 0 else dist.recv(out, 0)",
        "isend": "h = {} if rank == 0 else dist.irecv(out, 0); h.wait(); h",
    }.items():
        recv = (MINT.path + name.replace("send", "recv"),)
        yield MINT(name, "pair", "x, 1", lists(), (2,), text=text, also=recv, world="alias", alone=True)


def _objects() -> Iterator[list[Asked]]:
    thing = "{'rank': rank, 'text': 'a' * (rank + 1)}"
    lists_of = "found = [None] * size; {}"
    for name, what, arguments, text in (
        ("all_gather_object", "dict", f"found, {thing}", lists_of),
        ("gather_object", "to 0", f"{thing}, found, 0", lists_of),
        ("broadcast_object_list", "from 0", "found, 0", "found = [rank, {rank: 'a'}]; {}"),
        ("scatter_object_list", "from 0", "found, [('to', peer) for peer in range(size)], 0", "found = [None]; {}"),
    ):
        yield MINT(name, what, arguments, sizes=(1, 2, 3), text=text, world="alias")
    yield MINT("all_gather_object", "list too short", "[], 1", sizes=(2,), world="alias")
    arguments, match = "1, [None] * (size + 1), rank", "must be equal to group rank size"
    yield MINT("gather_object", "list too long", arguments, sizes=(2,), world="alias", match=match)


def _groups() -> Iterator[list[Asked]]:
    ranks = "dist.get_world_size(), dist.get_process_group_ranks(), dist.get_global_rank(None, 0)"
    yield MINT("get_rank", "world", text=f"[{{}}, {ranks}, dist.get_group_rank(None, 0)]")
    yield MINT("is_initialized", "yes", sizes=(1, 2), text="[{}, dist.is_available(), dist.get_backend()]")
    ranks = "dist.get_rank(_g), dist.get_world_size(_g), dist.get_process_group_ranks(_g), dist.get_backend(_g)"
    yield MINT("new_group", "turned", "[1, 0], backend='mccl'", sizes=(2,), text=f"_g = {{}}; [_g, {ranks}]")
    yield MINT("new_group", "none", sizes=(2,))
    group = "_g = dist.new_group([0, 2], backend='mccl') if rank in (0, 2) else None; {} if rank in (0, 2) else None"
    also = (MINT.path + "new_group",)
    yield MINT("all_reduce", "group", "x, group=_g", lists(), (3, 4), text=group, also=also, alone=True)
    text = "{}; [dist.is_initialized(), dist.get_rank()]"
    yield MINT("destroy_process_group", "then is_initialized", sizes=(1, 2), text=text, alone=True)


_SWEPT = {
    "all_reduce": Sweep(sizes=(1, 2, 3), dtypes=DTYPES, dtype_sizes=(2,)),
    "broadcast": Sweep(sizes=(2,), dtype_sizes=(2,), dtype_root=1, roots=(1, 2)),
}
CALLS = swept(MINT, _SWEPT) + joined(_forms, _values, _refusals, _messages, _objects, _groups)
