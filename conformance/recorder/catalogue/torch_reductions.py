"""torch.distributed: all_reduce, reduce, reduce_scatter and related functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from collshim.conformance.recorder.asked import Asked, Inputs, Module, blank, joined, part
from collshim.conformance.recorder.sweep import WHOLE_SHAPES, Sweep, swept
from collshim.conformance.recorder.trees import given

DIST = Module("torch.distributed.", "dist.")
DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64"),
    *("complex128", "int16", "uint16"),
)
OPS = ("SUM", "PRODUCT", "MIN", "MAX", "AVG", "BAND", "BOR", "BXOR")
WAITED = "w = {}; [w, w.wait()]"
MISSING = "missing 1 required positional"


def one(shape: Sequence[int] = (2, 3), dtype: str = "float32", **more: object) -> Callable[[int, int], Inputs]:
    """Give each rank an array ``x``."""
    return lambda rank, size: {"x": part(rank, shape, dtype, **more)}  # type: ignore[arg-type]


def listed(
    shape: Sequence[int] = (2, 3), dtype: str = "float32", count: int = 0, **more: object
) -> Callable[[int, int], Inputs]:
    """Give each rank a list ``parts``, one array per rank or ``count``, and an array ``out`` of one part's shape."""
    return lambda rank, size: {
        "out": blank(shape, dtype),
        "parts": [part(rank, shape, dtype, start=1 + 40 * index, **more) for index in range(count or size)],
    }


def _all_reduce() -> Iterator[list[Asked]]:
    for op, dtype in product(OPS, ("float32", "int32", "bool", "complex64")):
        sizes, asked = (1, 2, 3) if op == "AVG" else (2, 3), f"x, op=dist.ReduceOp.{op}"
        yield DIST("all_reduce", f"{op}-{dtype}", asked, one((3,), dtype), sizes)
    premul, also = "x, op=dist._make_nccl_premul_sum(2.0)", (DIST.path + "_make_nccl_premul_sum",)
    yield DIST("all_reduce", "premul_sum", premul, one(), (2,), also=also)
    yield DIST("all_reduce", "async", "x, async_op=True", one(), text="w = {}; [w, w.wait(), w.is_completed()]")
    yield DIST("all_reduce", "view", "x[1:2]", one((3, 2)))
    yield DIST("all_reduce", "leaf that requires grad", "x", one(grad=True), (2, 3))
    yield DIST("all_reduce", "not a tensor", "[1.0]", match="Expected type")
    yield DIST("all_reduce", "None", "None", sizes=(1, 2))
    yield DIST.each("all_reduce", {"numpy": "np.zeros(2)", "no argument": ("", MISSING)}, sizes=(2,))
    yield DIST.each("all_reduce", {"op is an int": "x, op=0", "op is a name": "x, op='sum'"}, one(), (1, 2))
    yield DIST.each("all_reduce", {"list of tensors": "[x]", "unknown keyword": "x, other=1"}, one(), (2,))


def _reduce() -> Iterator[list[Asked]]:
    for root in range(3):
        text = f"{{}}; _y = x if rank == {root} else None"
        yield DIST("reduce", f"to {root}", f"x, {root}", one(start=1 + root), range(root + 1, 5), text=text)
    for op, dtype in product(("PRODUCT", "MIN", "MAX", "AVG", "BAND", "BXOR"), ("float32", "int32")):
        yield DIST("reduce", f"{op}-{dtype}", f"x, 0, op=dist.ReduceOp.{op}", one((3,), dtype), (2, 3))
    yield DIST("reduce", "async", "x, 0, async_op=True", one(), (1, 2), text=WAITED)
    yield DIST("reduce", "group_dst", "x, group_dst=1", one(), (2, 3))
    both = {"dst and group_dst": ("x, 0, group_dst=0", "both"), "no dst": ("x", "Must specify")}
    yield DIST.each("reduce", both, one(), (1, 2))
    yield DIST("reduce", "not a tensor", "3, 0", sizes=(1, 2))


def _reduce_scatter() -> Iterator[list[Asked]]:
    ops = {op: f"out, parts, op=dist.ReduceOp.{op}" for op in ("PRODUCT", "MIN", "MAX", "AVG")}
    yield DIST.each("reduce_scatter", ops, listed(), (2, 3))
    yield DIST("reduce_scatter", "async", "out, parts, async_op=True", listed(), (1, 2), text=WAITED)
    yield DIST("reduce_scatter", "list too short", "out, parts", listed(count=1), (2,))
    wrong = {"tuple": "out, tuple(parts)", "tensor for list": "out, out", "dtypes differ": "out.int(), parts"}
    yield DIST.each("reduce_scatter", wrong, listed(), (2,))


def _reduce_scatter_single() -> Iterator[list[Asked]]:
    for name in ("reduce_scatter_tensor", "reduce_scatter_single"):
        ops = {op: f"out, x, op=dist.ReduceOp.{op}" for op in ("MAX", "AVG")}
        yield DIST.each(name, ops, whole((2, 3)), (2, 3))
        yield DIST(name, "async", "out, x, async_op=True", whole((2, 3)), (2,), text=WAITED)
        yield DIST(name, "stacked", "out, x.reshape(size, 2, 3)", whole((2, 3)), (1, 2, 3))
        yield DIST(name, "output too large", "out, x", shaped({"x": (4,), "out": (3,)}), (2,))
        yield DIST.each(name, {"dtypes differ": "out.int(), x", "not a tensor": "out, [x]"}, whole((2, 3)), (2,))


def shaped(shapes: Mapping[str, Sequence[int]]) -> Callable[[int, int], Inputs]:
    """Give each rank an array ``x``, and others of these shapes to write into."""
    return lambda rank, size: {
        name: part(rank, shape) if name == "x" else blank(shape) for name, shape in shapes.items()
    }


def whole(shape: Sequence[int], dtype: str = "float32") -> Callable[[int, int], Inputs]:
    """Give each rank an array ``x`` of one part per rank, and an array ``out`` of one part's shape."""
    return lambda rank, size: {"x": part(rank, (size * shape[0], *shape[1:]), dtype), "out": blank(shape, dtype)}


def _coalesced() -> Iterator[list[Asked]]:
    yield DIST("all_reduce_coalesced", "two", "xs", _two, (1, 2, 3))
    yield DIST("all_reduce_coalesced", "MAX", "xs, op=dist.ReduceOp.MAX", _two, (2,))


def _two(rank: int, size: int) -> Inputs:
    return {"xs": [part(rank), part(rank, (2,), start=5)]}


_MULTIPLES = "[x * (index + 1) for index in range(size)]"
_FORMS = {
    "all_reduce": "x",
    "broadcast": "x, 0",
    "reduce": "x, 0",
    "all_gather": "x",
    "gather": "x, 0",
    "scatter": f"{_MULTIPLES}, 0",
    "reduce_scatter": f"torch.empty(2), {_MULTIPLES}",
    "all_to_all": f"[torch.empty(2) for _ in range(size)], {_MULTIPLES}",
    "all_to_all_single": f"torch.empty(2 * size), torch.cat({_MULTIPLES})",
}


def _differentiable() -> Iterator[list[Asked]]:
    functional = Module("torch.distributed.nn.functional.", "_f.", "nn.functional.")
    setup = "import importlib; _f = importlib.import_module(dist.__name__ + '.nn.functional'); "
    gradient, several = (
        setup + "gradient(lambda x: {}, x, dy)",
        "torch.cat([dy * (index + 1) for index in range(size)])",
    )
    for op in ("SUM", "PRODUCT", "MAX", "MIN"):
        arguments = f"x, op=dist.ReduceOp.{op}"
        yield functional("all_reduce", f"gradient {op}", arguments, graded(), (1, 2, 3), text=gradient)
    for name, arguments in _FORMS.items():
        is_list = name in ("all_gather", "gather", "all_to_all")
        value = "list({})" if is_list else "{}"
        yield functional(name, "value", arguments, graded(), (1, 2, 3), text=setup + value)
        text = gradient.replace("{}", "torch.cat(list({}))") if is_list else gradient
        text = text.replace("dy", several) if is_list or name.endswith("single") else text
        yield functional(name, "gradient", arguments, graded(), (1, 2, 3), text=text)


def graded() -> Callable[[int, int], Inputs]:
    """Give each rank an array ``x``, and the gradient ``dy`` of its result."""
    return lambda rank, size: {"x": part(rank, (2,)), "dy": given([1.0 + rank, 3.0], "float32")}


_SINGLE = Sweep(shapes=WHOLE_SHAPES, dtypes=("float64", "int64", "int32", "bool"), dtype_shape=(2,))
_SWEPT = {
    "all_reduce": Sweep(dtypes=DTYPES, layout_sizes=(2, 3)),
    "reduce_scatter": Sweep(dtypes=("float64", "float16", "int64", "int32", "uint8", "bool")),
    "reduce_scatter_tensor": _SINGLE,
    "reduce_scatter_single": _SINGLE,
}
CALLS = swept(DIST, _SWEPT) + joined(
    _all_reduce, _reduce, _reduce_scatter, _reduce_scatter_single, _coalesced, _differentiable
)
