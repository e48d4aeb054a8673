"""Primitives of ``mindspore.ops`` on arrays (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.common.seed import generator
from collshim.mindspore.ops.function import array_func, index_func, math_func, nn_func, torch_func
from collshim.mindspore.ops.operations._computations import AlongAxis, Reduction, as_primitive
from collshim.mindspore.ops.primitive import Primitive
from collshim.mindspore.reducing import along, product
from collshim.mindspore.tensor import Tensor, settle, wrap

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "AddN": index_func.addn,
    "Ceil": vars(torch_func)["ceil"],
    "Cos": vars(torch_func)["cos"],
    "DType": lambda input_x: input_x.dtype,
    "Erf": vars(torch_func)["erf"],
    "Floor": vars(torch_func)["floor"],
    "FloorDiv": lambda x, y: math_func.div(x, y, rounding_mode="floor"),
    "GatherD": vars(torch_func)["gather_d"],
    "GatherNd": index_func.gather_nd,
    "GeLU": lambda x: nn_func.gelu(x, "tanh"),
    "Greater": vars(torch_func)["greater"],
    "GreaterEqual": vars(torch_func)["ge"],
    "Less": vars(torch_func)["less"],
    "LessEqual": vars(torch_func)["le"],
    "LogicalAnd": vars(torch_func)["logical_and"],
    "LogicalNot": vars(torch_func)["logical_not"],
    "LogicalOr": vars(torch_func)["logical_or"],
    "NotEqual": vars(torch_func)["ne"],
    "Ones": array_func.ones,
    "Print": index_func.print_,
    "Rank": array_func.rank,
    "ReLU6": vars(torch_func)["relu6"],
    "Reciprocal": vars(torch_func)["reciprocal"],
    "Round": vars(torch_func)["round"],
    "Rsqrt": vars(torch_func)["rsqrt"],
    "ScalarToTensor": array_func.scalar_to_tensor,
    "Select": vars(torch_func)["select"],
    "Sign": vars(torch_func)["sign"],
    "Sin": vars(torch_func)["sin"],
    "Size": array_func.size,
    "Slice": index_func.slice,
    "TensorShape": lambda input_x: Tensor(list(input_x.shape)),
    "Zeros": array_func.zeros,
}
_MADE = {name: as_primitive(name, function, __name__) for name, function in _FUNCTIONS.items()}
vars().update(_MADE)

__all__ = [
    "BatchMatMul",
    "BroadcastTo",
    "Gather",
    "InsertGradientOf",
    "ReduceAll",
    "ReduceAny",
    "ReduceProd",
    "Split",
    "Stack",
    "StandardNormal",
    "StridedSlice",
    "TopK",
    "UniformReal",
    "Unstack",
]
__all__ += list(_MADE)  # pyright: ignore[reportUnsupportedDunderAll]


class BatchMatMul(Primitive):
    """The matrix products of two batches, each optionally transposed first."""

    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        super().__init__("BatchMatMul")
        self.add_prim_attr("transpose_a", transpose_a)
        self.add_prim_attr("transpose_b", transpose_b)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the products."""
        left = x.swapaxes(-1, -2) if self.attrs["transpose_a"] else x
        right = y.swapaxes(-1, -2) if self.attrs["transpose_b"] else y
        return cast(Tensor, wrap(torch.matmul(left, right)))


class BroadcastTo(Primitive):
    """The input, repeated to a shape."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__("BroadcastTo")
        self.add_prim_attr("shape", shape)

    def __call__(self, input_x: Tensor) -> Tensor:
        """Return the tensor of that shape."""
        return cast(Tensor, wrap(torch.broadcast_to(input_x, tuple(self.attrs["shape"]))))


class Gather(Primitive):
    """``ops.gather``: entries along an axis."""

    def __init__(self, batch_dims: int = 0) -> None:
        super().__init__("Gather")
        self.add_prim_attr("batch_dims", batch_dims)

    def __call__(self, input_params: Tensor, input_indices: Tensor, axis: int) -> Tensor:
        """Return the entries."""
        return index_func.gather(input_params, input_indices, axis, self.attrs["batch_dims"])


class _OwnGradient(torch.autograd.Function):
    """The identity, with a function applied to the gradient."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], value: torch.Tensor) -> torch.Tensor:
        ctx.function = function
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        return None, ctx.function(wrap(gradients[0]))


class InsertGradientOf(Primitive):
    """The identity, with ``f`` applied to the gradient."""

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__("InsertGradientOf")
        self.f = f

    def __call__(self, x: Tensor) -> Tensor:
        """Return the input."""
        settle(x)
        return cast(Tensor, wrap(_OwnGradient.apply(self.f, x)))  # type: ignore[no-untyped-call]


class ReduceProd(Reduction):
    """The product."""

    _function = staticmethod(lambda x, axis, keep: wrap(product(x, axis, keep)))


class ReduceAll(Reduction):
    """Whether all elements are true."""

    _function = staticmethod(lambda x, axis, keep: wrap(along(torch.all, x, axis, keep)))


class ReduceAny(Reduction):
    """Whether any element is true."""

    _function = staticmethod(lambda x, axis, keep: wrap(along(torch.any, x, axis, keep)))


class Split(Primitive):
    """The input in ``output_num`` equal parts along an axis."""

    def __init__(self, axis: int = 0, output_num: int = 1) -> None:
        super().__init__("Split")
        self.add_prim_attr("axis", axis)
        self.add_prim_attr("output_num", output_num)

    def __call__(self, input_x: Tensor) -> tuple[Tensor, ...]:
        """Return the parts."""
        return tuple(wrap(torch.chunk(input_x, self.attrs["output_num"], self.attrs["axis"])))


class Stack(AlongAxis):
    """``ops.stack`` on a new axis."""

    _function = staticmethod(array_func.stack)

    def __init__(self, axis: int = 0) -> None:
        super().__init__(axis)


class StandardNormal(Primitive):
    """Random numbers of the standard normal distribution."""

    def __init__(self, seed: int = 0, seed2: int = 0) -> None:
        super().__init__("StandardNormal")

    def __call__(self, shape: Sequence[int]) -> Tensor:
        """Return random numbers of this shape."""
        return index_func.standard_normal(shape)


class StridedSlice(Primitive):
    """``ops.strided_slice``, with masks."""

    def __init__(
        self,
        begin_mask: int = 0,
        end_mask: int = 0,
        ellipsis_mask: int = 0,
        new_axis_mask: int = 0,
        shrink_axis_mask: int = 0,
    ) -> None:
        super().__init__("StridedSlice")
        self.masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)

    def __call__(self, input_x: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> Tensor:
        """Return the entries."""
        return index_func.strided_slice(input_x, begin, end, strides, *self.masks)


class TopK(Primitive):
    """The ``k`` greatest entries along the last axis, and their indices in int32."""

    def __init__(self, sorted: bool = True) -> None:
        super().__init__("TopK")
        self.add_prim_attr("sorted", sorted)

    def __call__(self, input_x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the entries and their indices."""
        values, places = torch.topk(input_x, k, -1, True, self.attrs["sorted"])
        return wrap(values), wrap(places.to(torch.int32))


class UniformReal(Primitive):
    """Random numbers from 0 to 1."""

    def __init__(self, seed: int = 0, seed2: int = 0) -> None:
        super().__init__("UniformReal")

    def __call__(self, shape: Sequence[int]) -> Tensor:
        """Return random numbers of this shape."""
        return cast(Tensor, wrap(torch.rand(tuple(shape), generator=generator(), dtype=torch_dtype("float32"))))


class Unstack(Primitive):
    """The entries along an axis, without that axis."""

    def __init__(self, axis: int = 0, num: int | None = None) -> None:
        super().__init__("Unstack")
        self.add_prim_attr("axis", axis)

    def __call__(self, input_x: Tensor) -> tuple[Tensor, ...]:
        """Return the parts."""
        return tuple(wrap(torch.unbind(input_x, self.attrs["axis"])))
