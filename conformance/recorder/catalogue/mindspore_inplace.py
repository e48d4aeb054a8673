"""MindSpore: ``mint.distributed`` and ``ops.communication``, which write into what they are given, as torch does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collshim.conformance.recorder.asked import Asked, Inputs, ask, blank, part
from collshim.conformance.recorder.catalogue.mindspore_comm import DTYPES, graded
from collshim.conformance.recorder.catalogue.torch_reductions import one
from collshim.conformance.recorder.sweep import SHAPES, Sweep, swept

D = "mindspore.mint.distributed."


def lists(shape: Sequence[int] = (2, 3), dtype: str = "float32", count: int = 0) -> Callable[[int, int], Inputs]:
    """An array ``x``, lists ``outs`` and ``parts`` of one per rank or ``count``, whole arrays and their places."""
    return lambda rank, size: {
        "x": part(rank, shape, dtype),
        "out": blank(shape, dtype),
        "outs": [blank(shape, dtype) for _ in range(count or size)],
        "parts": [part(rank, shape, dtype, start=1 + 40 * peer) for peer in range(count or size)],
    }


def wholes(rank: int, size: int) -> Inputs:
    """A whole array and a part, and places for both."""
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
    for module, prefix in {"dist": "mint.distributed.", "opc": "ops.communication."}.items():
        for name, (arguments, inputs) in FORMS.items():
            api = f"mindspore.{prefix}{name}"
            few = (1, 2, 3, 4) if module == "dist" else (2, 3)
            yield ask(f"{prefix}{name}/all", api, f"{module}.{name}({arguments})", inputs, sizes=few)
            text = (
                f"h = {module}.{name}({arguments}{', ' if arguments else ''}async_op=True); h.wait() if h else None; h"
            )
            yield ask(f"{prefix}{name}/async", api, text, inputs, sizes=(2,))


def _values() -> Iterator[list[Asked]]:
    for op in ("sum", "prod", "min", "max", "avg"):
        yield ask(
            f"mint.distributed.all_reduce/{op}", D + "all_reduce", f"dist.all_reduce(x, op='{op}')", one(), sizes=(2, 3)
        )
    for dtype in DTYPES:
        yield ask(
            f"mint.distributed.all_gather/{dtype}",
            D + "all_gather",
            "dist.all_gather(outs, x)",
            lists((3,), dtype),
            sizes=(2,),
        )
    for name, shape in SHAPES.items():
        yield ask(
            f"mint.distributed.all_gather/{name}",
            D + "all_gather",
            "dist.all_gather(outs, x)",
            lists(shape),
            sizes=(1, 2, 3),
        )
    for root in (1, 2):
        yield ask(
            f"mint.distributed.gather/to {root}",
            D + "gather",
            f"dist.gather(x, outs, {root})",
            lists(),
            sizes=range(root + 1, 5),
        )
        yield ask(
            f"mint.distributed.scatter/from {root}",
            D + "scatter",
            f"dist.scatter(out, parts, {root})",
            lists(),
            sizes=range(root + 1, 5),
        )
    graded_text = "def _f(x):\n    y = x * 2\n    dist.all_reduce(y)\n    return y\ngradient(_f, x, dy)"
    yield ask("mint.distributed.all_reduce/gradient", D + "all_reduce", graded_text, graded, sizes=(1, 2))
    yield ask(
        "mint.distributed.all_gather/ragged",
        D + "all_gather",
        "dist.all_gather(outs, x)",
        _ragged,
        sizes=(2,),
        alone=True,
    )


def _whole_numbers(rank: int, size: int) -> Inputs:
    return {"y": part(rank, dtype="int32"), "outs": [blank() for _ in range(size)]}


def _ragged(rank: int, size: int) -> Inputs:
    return {"x": part(rank, (rank + 1,)), "outs": [blank((peer + 1,)) for peer in range(size)]}


def _refused() -> Iterator[list[Asked]]:
    def bad(name: str, what: str, arguments: str, match: str = "", count: int = 0) -> list[Asked]:
        return ask(
            f"mint.distributed.{name}/{what}",
            D + name,
            f"dist.{name}({arguments})",
            lists(count=count),
            sizes=(2,),
            match=match,
        )

    yield bad("all_reduce", "unknown op", "x, op='foo'", "must be one of sum, prod, min, max, avg")
    yield bad("all_reduce", "not a tensor", "1")
    yield bad("all_reduce", "group is an int", "x, group=1", "must be type of string")
    yield bad("all_reduce", "async_op is an int", "x, async_op=1", "must be a bool")
    yield bad("all_gather", "list too long", "outs, x", "list tensor len must be equal to group rank size", 3)
    yield bad("all_gather", "empty list", "[], x", "list tensor len must be equal to group rank size")
    yield bad("all_gather", "shapes differ", "[one.reshape(3, 2) for one in outs], x", "output shape should be")
    text, match = "dist.all_gather(outs, y)", "output dtype should be"
    yield ask(
        "mint.distributed.all_gather/dtypes differ", D + "all_gather", text, _whole_numbers, sizes=(2,), match=match
    )
    yield bad("all_gather", "list of numbers", "[1] * size, x", "Expected tensor")
    yield bad("broadcast", "src is text", "x, 'a'", "src must be int")
    yield bad("broadcast", "no src", "x", "missing 1 required positional")
    yield bad("broadcast", "src out of range", "x, 99", "99")
    yield bad("scatter", "list too long", "out, parts", "list tensor len must be equal to group rank size", 3)
    yield bad("scatter", "no list off the root", "out, parts if rank == 0 else None")
    yield bad("gather", "no list anywhere", "x, None", "Expected list or tuple")
    yield bad("gather", "list too long", "x, outs", "list tensor len must be equal to group rank size", 3)
    yield bad("send", "to itself", "x, rank", "Invalid destination rank")
    yield bad("send", "dst is text", "x, 'a'")
    yield bad("recv", "src is text", "x, 'a'")
    yield bad("batch_isend_irecv", "empty", "[]")
    yield bad("P2POp", "unknown op", "'foo', x, 0")
    yield bad("all_to_all_single", "indivisible", "out.reshape(-1)[:5], x.reshape(-1)[:5]")
    yield bad("get_backend", "group is an int", "1", "must be type of string or None")
    yield bad("get_rank", "unknown group", "'nope'")
    yield bad("get_world_size", "unknown group", "'nope'")
    yield bad("get_group_rank", "unknown group", "'nope', 0")
    yield bad("new_group", "duplicates", "[0, 0]", "has duplicate data")
    yield bad("new_group", "tuple", "(0, 1)")


def _messages() -> Iterator[list[Asked]]:
    pair = "dist.send(x, 1) if rank == 0 else dist.recv(out, 0)"
    yield ask(
        "mint.distributed.send/pair", (D + "send", D + "recv"), pair, lists(), sizes=(2,), world="alias", alone=True
    )
    soon = "h = dist.isend(x, 1) if rank == 0 else dist.irecv(out, 0); h.wait(); h"
    yield ask(
        "mint.distributed.isend/pair", (D + "isend", D + "irecv"), soon, lists(), sizes=(2,), world="alias", alone=True
    )


def _objects() -> Iterator[list[Asked]]:
    thing = "{'rank': rank, 'text': 'a' * (rank + 1)}"
    yield ask(
        "mint.distributed.all_gather_object/dict",
        D + "all_gather_object",
        f"found = [None] * size; dist.all_gather_object(found, {thing})",
        sizes=(1, 2, 3),
        world="alias",
    )
    yield ask(
        "mint.distributed.gather_object/to 0",
        D + "gather_object",
        f"found = [None] * size; dist.gather_object({thing}, found, 0)",
        sizes=(1, 2, 3),
        world="alias",
    )
    yield ask(
        "mint.distributed.broadcast_object_list/from 0",
        D + "broadcast_object_list",
        "found = [rank, {rank: 'a'}]; dist.broadcast_object_list(found, 0)",
        sizes=(1, 2, 3),
        world="alias",
    )
    yield ask(
        "mint.distributed.scatter_object_list/from 0",
        D + "scatter_object_list",
        "found = [None]; dist.scatter_object_list(found, [('to', peer) for peer in range(size)], 0)",
        sizes=(1, 2, 3),
        world="alias",
    )
    yield ask(
        "mint.distributed.all_gather_object/list too short",
        D + "all_gather_object",
        "dist.all_gather_object([], 1)",
        sizes=(2,),
        world="alias",
    )
    yield ask(
        "mint.distributed.gather_object/list too long",
        D + "gather_object",
        "dist.gather_object(1, [None] * (size + 1), rank)",
        sizes=(2,),
        world="alias",
        match="must be equal to group rank size",
    )


def _groups() -> Iterator[list[Asked]]:
    yield ask(
        "mint.distributed.get_rank/world",
        D + "get_rank",
        "[dist.get_rank(), dist.get_world_size(), dist.get_process_group_ranks(), "
        "dist.get_global_rank(None, 0), dist.get_group_rank(None, 0)]",
    )
    yield ask(
        "mint.distributed.is_initialized/yes",
        D + "is_initialized",
        "[dist.is_initialized(), dist.is_available(), dist.get_backend()]",
        sizes=(1, 2),
    )
    yield ask(
        "mint.distributed.new_group/turned",
        D + "new_group",
        "_g = dist.new_group([1, 0], backend='mccl'); [_g, dist.get_rank(_g), "
        "dist.get_world_size(_g), dist.get_process_group_ranks(_g), dist.get_backend(_g)]",
        sizes=(2,),
    )
    yield ask("mint.distributed.new_group/none", D + "new_group", "dist.new_group()", sizes=(2,))
    grouped = (
        "_g = dist.new_group([0, 2], backend='mccl') if rank in (0, 2) else "
        "None; dist.all_reduce(x, group=_g) if rank in (0, 2) else None"
    )
    yield ask(
        "mint.distributed.all_reduce/group",
        (D + "all_reduce", D + "new_group"),
        grouped,
        lists(),
        sizes=(3, 4),
        alone=True,
    )
    yield ask(
        "mint.distributed.destroy_process_group/then is_initialized",
        D + "destroy_process_group",
        "dist.destroy_process_group(); [dist.is_initialized(), dist.get_rank()]",
        sizes=(1, 2),
        alone=True,
    )


_SWEPT = {
    "all_reduce": Sweep(sizes=(1, 2, 3), dtypes=DTYPES, dtype_sizes=(2,)),
    "broadcast": Sweep(sizes=(2,), dtypes=DTYPES, dtype_sizes=(2,), dtype_root=1, roots=(1, 2)),
}
_FAMILIES = (_forms, _values, _refused, _messages, _objects, _groups)
CALLS = swept(D, "dist.", "mint.distributed.", _SWEPT) + [
    asked for family in _FAMILIES for several in family() for asked in several
]
