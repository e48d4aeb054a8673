"""torch.distributed: all_reduce, reduce, reduce_scatter and their kin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collshim.conformance.recorder.asked import Asked, Inputs, ask, blank, part
from collshim.conformance.recorder.sweep import WHOLE_SHAPES, Sweep, swept
from collshim.conformance.recorder.trees import given

D = "torch.distributed."
DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64"),
    *("complex128", "int16", "uint16"),
)
OPS = ("SUM", "PRODUCT", "MIN", "MAX", "AVG", "BAND", "BOR", "BXOR")


def one(shape: Sequence[int] = (2, 3), dtype: str = "float32", **more: object) -> Callable[[int, int], Inputs]:
    """Each rank has an array ``x``."""
    return lambda rank, size: {"x": part(rank, shape, dtype, **more)}  # type: ignore[arg-type]


def listed(
    shape: Sequence[int] = (2, 3), dtype: str = "float32", count: int = 0, **more: object
) -> Callable[[int, int], Inputs]:
    """Each rank has a list ``parts``, one array per rank or ``count``, and an array ``out`` of one part's shape."""
    return lambda rank, size: {
        "out": blank(shape, dtype),
        "parts": [part(rank, shape, dtype, start=1 + 40 * index, **more) for index in range(count or size)],
    }


def _all_reduce() -> Iterator[list[Asked]]:
    api, call = D + "all_reduce", "dist.all_reduce(x)"
    for op in OPS:
        for dtype in ("float32", "int32", "bool", "complex64"):
            text = f"dist.all_reduce(x, op=dist.ReduceOp.{op})"
            yield ask(
                f"all_reduce/{op}-{dtype}", api, text, one((3,), dtype), sizes=(1, 2, 3) if op == "AVG" else (2, 3)
            )
    premul = "dist.all_reduce(x, op=dist._make_nccl_premul_sum(2.0))"
    yield ask("all_reduce/premul_sum", (api, D + "_make_nccl_premul_sum"), premul, one(), sizes=(2,))
    yield ask("all_reduce/async", api, "w = dist.all_reduce(x, async_op=True); [w, w.wait(), w.is_completed()]", one())
    yield ask("all_reduce/view", api, "dist.all_reduce(x[1:2])", one((3, 2)))
    yield ask("all_reduce/leaf that requires grad", api, call, one(grad=True), sizes=(2, 3))
    yield ask("all_reduce/not a tensor", api, "dist.all_reduce([1.0])", match="Expected type")
    yield ask("all_reduce/list of tensors", api, "dist.all_reduce([x])", one(), sizes=(2,))
    yield ask("all_reduce/None", api, "dist.all_reduce(None)", sizes=(1, 2))
    yield ask("all_reduce/numpy", api, "dist.all_reduce(np.zeros(2))", sizes=(2,))
    yield ask("all_reduce/op is an int", api, "dist.all_reduce(x, op=0)", one(), sizes=(1, 2))
    yield ask("all_reduce/op is a name", api, "dist.all_reduce(x, op='sum')", one(), sizes=(1, 2))
    yield ask("all_reduce/unknown keyword", api, "dist.all_reduce(x, other=1)", one(), sizes=(2,))
    yield ask("all_reduce/no argument", api, "dist.all_reduce()", sizes=(2,), match="missing 1 required positional")


def _reduce() -> Iterator[list[Asked]]:
    api = D + "reduce"
    for root in range(3):
        text = f"dist.reduce(x, {root}); x if rank == {root} else None"
        yield ask(f"reduce/to {root}", api, text.replace("; x", "; _y = x"), _rooted(root), sizes=range(root + 1, 5))
    for op in ("PRODUCT", "MIN", "MAX", "AVG", "BAND", "BXOR"):
        for dtype in ("float32", "int32"):
            text = f"dist.reduce(x, 0, op=dist.ReduceOp.{op})"
            yield ask(f"reduce/{op}-{dtype}", api, text, one((3,), dtype), sizes=(2, 3))
    yield ask("reduce/async", api, "w = dist.reduce(x, 0, async_op=True); [w, w.wait()]", one(), sizes=(1, 2))
    yield ask("reduce/group_dst", api, "dist.reduce(x, group_dst=1)", one(), sizes=(2, 3))
    yield ask("reduce/dst and group_dst", api, "dist.reduce(x, 0, group_dst=0)", one(), sizes=(1, 2), match="both")
    yield ask("reduce/no dst", api, "dist.reduce(x)", one(), sizes=(1, 2), match="Must specify")
    yield ask("reduce/not a tensor", api, "dist.reduce(3, 0)", sizes=(1, 2))


def _rooted(root: int) -> Callable[[int, int], Inputs]:
    return lambda rank, size: {"x": part(rank, start=1 + root)}


def _reduce_scatter() -> Iterator[list[Asked]]:
    api, call = D + "reduce_scatter", "dist.reduce_scatter(out, parts)"
    for op in ("PRODUCT", "MIN", "MAX", "AVG"):
        text = f"dist.reduce_scatter(out, parts, op=dist.ReduceOp.{op})"
        yield ask(f"reduce_scatter/{op}", api, text, listed(), sizes=(2, 3))
    text = "w = dist.reduce_scatter(out, parts, async_op=True); [w, w.wait()]"
    yield ask("reduce_scatter/async", api, text, listed(), sizes=(1, 2))
    yield ask("reduce_scatter/list too short", api, call, listed(count=1), sizes=(2,))
    yield ask("reduce_scatter/tuple", api, "dist.reduce_scatter(out, tuple(parts))", listed(), sizes=(2,))
    yield ask("reduce_scatter/tensor for list", api, "dist.reduce_scatter(out, out)", listed(), sizes=(2,))
    yield ask("reduce_scatter/dtypes differ", api, "dist.reduce_scatter(out.int(), parts)", listed(), sizes=(2,))


def _reduce_scatter_single() -> Iterator[list[Asked]]:
    for name in ("reduce_scatter_tensor", "reduce_scatter_single"):
        api, call = D + name, f"dist.{name}(out, x)"
        yield ask(f"{name}/MAX", api, f"dist.{name}(out, x, op=dist.ReduceOp.MAX)", whole((2, 3)), sizes=(2, 3))
        yield ask(f"{name}/AVG", api, f"dist.{name}(out, x, op=dist.ReduceOp.AVG)", whole((2, 3)), sizes=(2, 3))
        yield ask(
            f"{name}/async", api, f"w = dist.{name}(out, x, async_op=True); [w, w.wait()]", whole((2, 3)), sizes=(2,)
        )
        yield ask(f"{name}/stacked", api, f"dist.{name}(out, x.reshape(size, 2, 3))", whole((2, 3)), sizes=(1, 2, 3))
        yield ask(
            f"{name}/output too large",
            api,
            call,
            lambda rank, size: {"x": part(rank, (4,)), "out": blank((3,))},
            sizes=(2,),
        )
        yield ask(f"{name}/dtypes differ", api, f"dist.{name}(out.int(), x)", whole((2, 3)), sizes=(2,))
        yield ask(f"{name}/not a tensor", api, f"dist.{name}(out, [x])", whole((2, 3)), sizes=(2,))


def whole(shape: Sequence[int], dtype: str = "float32") -> Callable[[int, int], Inputs]:
    """Each rank has an array ``x`` of one part per rank and an array ``out`` of one part's shape."""
    return lambda rank, size: {
        "x": part(rank, (size * shape[0], *shape[1:]), dtype),
        "out": blank(shape, dtype),
    }


def _coalesced() -> Iterator[list[Asked]]:
    api = D + "all_reduce_coalesced"
    yield ask("all_reduce_coalesced/two", api, "dist.all_reduce_coalesced(xs)", _two, sizes=(1, 2, 3))
    yield ask("all_reduce_coalesced/MAX", api, "dist.all_reduce_coalesced(xs, op=dist.ReduceOp.MAX)", _two, sizes=(2,))


def _two(rank: int, size: int) -> Inputs:
    return {"xs": [part(rank), part(rank, (2,), start=5)]}


def _differentiable() -> Iterator[list[Asked]]:
    module = "torch.distributed.nn.functional."
    setup = "import importlib; _f = importlib.import_module(dist.__name__ + '.nn.functional'); "
    for op in ("SUM", "PRODUCT", "MAX", "MIN"):
        call = f"gradient(lambda x: _f.all_reduce(x, op=dist.ReduceOp.{op}), x, dy)"
        yield ask(
            f"nn.functional.all_reduce/gradient {op}", module + "all_reduce", setup + call, graded(), sizes=(1, 2, 3)
        )
    forms = {
        "all_reduce": "_f.all_reduce(x)",
        "broadcast": "_f.broadcast(x, 0)",
        "reduce": "_f.reduce(x, 0)",
        "all_gather": "list(_f.all_gather(x))",
        "gather": "list(_f.gather(x, 0))",
        "scatter": "_f.scatter([x * (index + 1) for index in range(size)], 0)",
        "reduce_scatter": "_f.reduce_scatter(torch.empty(2), [x * (index + 1) for index in range(size)])",
        "all_to_all": (
            "list(_f.all_to_all([torch.empty(2) for _ in range(size)], [x * (index + 1) for index in range(size)]))"
        ),
        "all_to_all_single": (
            "_f.all_to_all_single(torch.empty(2 * size), torch.cat([x * (index + 1) for index in range(size)]))"
        ),
    }
    for name, text in forms.items():
        yield ask(f"nn.functional.{name}/value", module + name, setup + text, graded(), sizes=(1, 2, 3))
        joined = f"gradient(lambda x: torch.cat({text}), x, torch.cat([dy * (index + 1) for index in range(size)]))"
        single = f"gradient(lambda x: {text}, x, dy)"
        whole = f"gradient(lambda x: {text}, x, torch.cat([dy * (index + 1) for index in range(size)]))"
        call = joined if text.startswith("list") else whole if name.endswith("single") else single
        yield ask(f"nn.functional.{name}/gradient", module + name, setup + call, graded(), sizes=(1, 2, 3))


def graded() -> Callable[[int, int], Inputs]:
    """Each rank has an array ``x``, and the gradient ``dy`` of what is made of it."""
    return lambda rank, size: {"x": part(rank, (2,)), "dy": given([1.0 + rank, 3.0], "float32")}


_SINGLE = Sweep(shapes=WHOLE_SHAPES, dtypes=("float64", "int64", "int32", "bool"), dtype_shape=(2,))
_SWEPT = {
    "all_reduce": Sweep(dtypes=DTYPES, layout_sizes=(2, 3)),
    "reduce_scatter": Sweep(dtypes=("float64", "float16", "int64", "int32", "uint8", "bool")),
    "reduce_scatter_tensor": _SINGLE,
    "reduce_scatter_single": _SINGLE,
}
CALLS = swept(D, "dist.", "", _SWEPT) + [
    asked
    for family in (_all_reduce, _reduce, _reduce_scatter, _reduce_scatter_single, _coalesced, _differentiable)
    for several in family()
    for asked in several
]
