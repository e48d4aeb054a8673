"""OneFlow: all_reduce, reduce, reduce_scatter, and the two functions of whole tensors."""

from __future__ import annotations

from collections.abc import Iterator

from collshim.conformance.recorder.asked import SIZES, Asked, Calls, Inputs, Module, blank, joined, part
from collshim.conformance.recorder.catalogue.torch_moves import into
from collshim.conformance.recorder.catalogue.torch_reductions import MISSING, listed, one, whole
from collshim.conformance.recorder.sweep import Sweep, swept

COMM = Module("oneflow.comm.", "flow.comm.", "comm.")


def _all_reduce() -> Iterator[list[Asked]]:
    for dtype in ("float16", "bfloat16"):
        yield COMM("all_reduce", dtype, "x", one((3,), dtype), (2,), alone=True)
    yield COMM("all_reduce", "overflow", "x", one((3,), "int8", start=100), (2, 3))
    yield COMM("all_reduce", "documented", "x", text="x = flow.tensor([[1, 2], [3, 4]]) + flow.env.get_rank(); {}; x")
    yield COMM("all_reduce", "view", "x[1:2]", one((3, 2)), (1, 2, 3))
    yield COMM("all_reduce", "leaf that requires grad", "x", one(grad=True), (1, 2), "leaf")
    yield COMM("all_reduce", "not a leaf", "y", one(grad=True), (1, 2), text="y = x * 2; {}")
    gradient = "def _f(x):\n    y = x * 2\n    {}\n    return y\ngradient(_f, x, x)"
    yield COMM("all_reduce", "gradient", "y", one((2,)), (1, 2), text=gradient)
    wrong = {"list": "[x]", "number": "3", "None": "None", "numpy": "np.ones(2)"}
    yield COMM.each("all_reduce", wrong, one(), (1, 2))
    yield COMM("all_reduce", "no argument", sizes=(1, 2), match=MISSING)
    yield COMM("all_reduce", "two arguments", "x, x", one(), (2,), "positional argument")


def _reduce() -> Iterator[list[Asked]]:
    yield COMM("reduce", "view", "x[1:2], 0", one((3, 2)), (2,))
    yield COMM("reduce", "transposed", "x, 0", one(layout="transposed"), (2,))
    yield COMM("reduce", "leaf that requires grad", "x, 0", one(grad=True), (1, 2), "leaf", alone=True)
    wrong: Calls = {
        "dst out of range": "x, 9",
        "list": "[x], 0",
        "dst is text": "x, 'a'",
        "dst is a float": "x, 0.0",
        "dst is None": "x, None",
        "no dst": ("x", MISSING),
    }
    yield COMM.each("reduce", wrong, one(), (1, 2))


def _reduce_scatter() -> Iterator[list[Asked]]:
    yield COMM("reduce_scatter", "output of another dtype", "out, parts", _of_two_dtypes, (1, 2))
    wrong = {
        "view": "out[1:2], [one[1:2] for one in parts]",
        "tuple": "out, tuple(parts)",
        "list too short": "out, parts[:-1]",
        "number": "3, parts",
        "shape of output": "out[:1], parts",
        "entry is no tensor": "out, [3] * size",
    }
    yield COMM.each("reduce_scatter", wrong, listed(), (1, 2))


def _of_two_dtypes(rank: int, size: int) -> Inputs:
    return {"out": blank((2,), "float64"), "parts": [part(rank, (2,), "int32") for _ in range(size)]}


FORMS = {"concatenated": "(size * 2, 3)", "stacked": "(size, 2, 3)", "flat": "(size * 6,)", "columns": "(2, 3 * size)"}


def _flat() -> Iterator[list[Asked]]:
    for form, shape in FORMS.items():
        place = f"out = flow.zeros({shape}, dtype=x.dtype); {{}}"
        yield COMM("all_gather_into_tensor", form, "out, x", one(), text=place)
        yield COMM("reduce_scatter_tensor", form, f"out, x.reshape({shape})", whole((2, 3)))
    wrong: Calls = {
        "bad sizes": ("out[:1], x", "output tensor"),
        "bad dtypes": ("out, x.to(flow.int32)", "output tensor"),
        "bad number": "3, x",
        "bad list": "out, [x]",
        "bad None": "None, x",
    }
    for name, inputs in {"all_gather_into_tensor": into((2, 3)), "reduce_scatter_tensor": whole((2, 3))}.items():
        yield COMM.each(name, wrong, inputs, (1, 2))
        yield COMM(name, "transposed input", "out, x.T", inputs, (2,))
        yield COMM(name, "input requires grad", "out, x * flow.ones(1, requires_grad=True)", inputs, (2,))
        wide = "wide = flow.zeros(2 * out.shape[0], 3); {}"
        yield COMM(name, "strided output", "wide[::2], x", inputs, (2,), text=wide)


_SWEPT = {
    "all_reduce": Sweep(dtype_sizes=SIZES, layout_sizes=(1, 2, 3)),
    "reduce": Sweep(sizes=(2,), roots=range(4)),
    "reduce_scatter": Sweep(),
    "all_gather_into_tensor": Sweep(shapes={}),
    "reduce_scatter_tensor": Sweep(shapes={}),
}
CALLS = swept(COMM, _SWEPT) + joined(_all_reduce, _reduce, _reduce_scatter, _flat)
