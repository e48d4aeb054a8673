"""OneFlow: all_reduce, reduce, reduce_scatter, and the two functions of whole tensors."""

from __future__ import annotations

from collections.abc import Iterator

from collshim.conformance.recorder.asked import SIZES, Asked, ask, blank, part
from collshim.conformance.recorder.catalogue.torch_moves import into
from collshim.conformance.recorder.catalogue.torch_reductions import listed, one, whole
from collshim.conformance.recorder.sweep import Sweep, swept

C = "oneflow.comm."
REDUCED = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")
MOVED = (*REDUCED, "float16")


def _all_reduce() -> Iterator[list[Asked]]:
    api, call = C + "all_reduce", "flow.comm.all_reduce(x)"
    for dtype in ("float16", "bfloat16"):
        yield ask(f"comm.all_reduce/{dtype}", api, call, one((3,), dtype), sizes=(2,), alone=True)
    yield ask("comm.all_reduce/overflow", api, call, one((3,), "int8", start=100), sizes=(2, 3))
    documented = "x = flow.tensor([[1, 2], [3, 4]]) + flow.env.get_rank(); flow.comm.all_reduce(x); x"
    yield ask("comm.all_reduce/documented", api, documented)
    yield ask("comm.all_reduce/view", api, "flow.comm.all_reduce(x[1:2])", one((3, 2)), sizes=(1, 2, 3))
    yield ask("comm.all_reduce/leaf that requires grad", api, call, one(grad=True), sizes=(1, 2), match="leaf")
    yield ask("comm.all_reduce/not a leaf", api, "y = x * 2; flow.comm.all_reduce(y)", one(grad=True), sizes=(1, 2))
    gradient = "def _f(x):\n    y = x * 2\n    flow.comm.all_reduce(y)\n    return y\ngradient(_f, x, x)"
    yield ask("comm.all_reduce/gradient", api, gradient, one((2,)), sizes=(1, 2))
    for what, text in {"list": "[x]", "number": "3", "None": "None", "numpy": "np.ones(2)"}.items():
        yield ask(f"comm.all_reduce/{what}", api, f"flow.comm.all_reduce({text})", one(), sizes=(1, 2))
    missing, surplus = "missing 1 required positional", "positional argument"
    yield ask("comm.all_reduce/no argument", api, "flow.comm.all_reduce()", sizes=(1, 2), match=missing)
    yield ask("comm.all_reduce/two arguments", api, "flow.comm.all_reduce(x, x)", one(), sizes=(2,), match=surplus)


def _reduce() -> Iterator[list[Asked]]:
    api, to_0 = C + "reduce", "flow.comm.reduce(x, 0)"
    yield ask("comm.reduce/view", api, "flow.comm.reduce(x[1:2], 0)", one((3, 2)), sizes=(2,))
    yield ask("comm.reduce/transposed", api, to_0, one(layout="transposed"), sizes=(2,))
    leaf = "comm.reduce/leaf that requires grad"
    yield ask(leaf, api, to_0, one(grad=True), sizes=(1, 2), alone=True, match="leaf")
    yield ask("comm.reduce/dst out of range", api, "flow.comm.reduce(x, 9)", one(), sizes=(1, 2))
    wrong = {"list": "[x], 0", "dst is text": "x, 'a'", "dst is a float": "x, 0.0", "dst is None": "x, None"}
    for what, text in wrong.items():
        yield ask(f"comm.reduce/{what}", api, f"flow.comm.reduce({text})", one(), sizes=(1, 2))
    missing = "missing 1 required positional"
    yield ask("comm.reduce/no dst", api, "flow.comm.reduce(x)", one(), sizes=(1, 2), match=missing)


def _reduce_scatter() -> Iterator[list[Asked]]:
    api, call = C + "reduce_scatter", "flow.comm.reduce_scatter(out, parts)"
    yield ask(
        "comm.reduce_scatter/output of another dtype",
        api,
        call,
        lambda rank, size: {"out": blank((2,), "float64"), "parts": [part(rank, (2,), "int32") for _ in range(size)]},
        sizes=(1, 2),
    )
    yield ask(
        "comm.reduce_scatter/view",
        api,
        "flow.comm.reduce_scatter(out[1:2], [one[1:2] for one in parts])",
        listed(),
        sizes=(1, 2),
    )
    for what, text in {
        "tuple": "out, tuple(parts)",
        "list too short": "out, parts[:-1]",
        "number": "3, parts",
        "shape of output": "out[:1], parts",
        "entry is no tensor": "out, [3] * size",
    }.items():
        yield ask(f"comm.reduce_scatter/{what}", api, f"flow.comm.reduce_scatter({text})", listed(), sizes=(1, 2))


def _flat() -> Iterator[list[Asked]]:
    forms = {
        "concatenated": "(size * 2, 3)",
        "stacked": "(size, 2, 3)",
        "flat": "(size * 6,)",
        "columns": "(2, 3 * size)",
    }
    for form, shape in forms.items():
        gathered = f"out = flow.zeros({shape}, dtype=x.dtype)"
        yield ask(
            f"comm.all_gather_into_tensor/{form}",
            C + "all_gather_into_tensor",
            f"{gathered}; flow.comm.all_gather_into_tensor(out, x)",
            one(),
        )
        yield ask(
            f"comm.reduce_scatter_tensor/{form}",
            C + "reduce_scatter_tensor",
            f"flow.comm.reduce_scatter_tensor(out, x.reshape({shape}))",
            whole((2, 3)),
        )
    for name, inputs in {"all_gather_into_tensor": into((2, 3)), "reduce_scatter_tensor": whole((2, 3))}.items():
        for what, text in {
            "sizes": "out[:1], x",
            "dtypes": "out, x.to(flow.int32)",
            "number": "3, x",
            "list": "out, [x]",
            "None": "None, x",
        }.items():
            yield ask(
                f"comm.{name}/bad {what}",
                C + name,
                f"flow.comm.{name}({text})",
                inputs,
                sizes=(1, 2),
                match="output tensor" if what in ("sizes", "dtypes") else "",
            )
        yield ask(f"comm.{name}/transposed input", C + name, f"flow.comm.{name}(out, x.T)", inputs, sizes=(2,))
        yield ask(
            f"comm.{name}/input requires grad",
            C + name,
            f"flow.comm.{name}(out, x * flow.ones(1, requires_grad=True))",
            inputs,
            sizes=(2,),
        )
        yield ask(
            f"comm.{name}/strided output",
            C + name,
            f"wide = flow.zeros(2 * out.shape[0], 3); flow.comm.{name}(wide[::2], x)",
            inputs,
            sizes=(2,),
        )


_SWEPT = {
    "all_reduce": Sweep(dtypes=REDUCED, dtype_sizes=SIZES, layout_sizes=(1, 2, 3)),
    "reduce": Sweep(sizes=(2,), dtypes=REDUCED, roots=range(4)),
    "reduce_scatter": Sweep(dtypes=REDUCED),
    "all_gather_into_tensor": Sweep(shapes={}, dtypes=MOVED),
    "reduce_scatter_tensor": Sweep(shapes={}, dtypes=REDUCED),
}
CALLS: list[Asked] = swept(C, "flow.comm.", "comm.", _SWEPT) + [
    asked for family in (_all_reduce, _reduce, _reduce_scatter, _flat) for several in family() for asked in several
]
