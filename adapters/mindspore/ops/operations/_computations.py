"""Primitives of ``mindspore.ops`` that compute: functions as objects (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch.nn import functional

from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.ops.function import array_func, math_func, nn_func, parameter_func
from collshim.mindspore.ops.primitive import Primitive
from collshim.mindspore.slopes import cross_entropy_of_rows
from collshim.mindspore.tensor import Tensor, wrap

__all__ = [
    "Abs",
    "Add",
    "Argmax",
    "Assign",
    "AssignAdd",
    "AssignSub",
    "BiasAdd",
    "Cast",
    "Concat",
    "Depend",
    "Div",
    "Equal",
    "Exp",
    "ExpandDims",
    "Fill",
    "Flatten",
    "Identity",
    "Log",
    "LogSoftmax",
    "MatMul",
    "Maximum",
    "Minimum",
    "Mul",
    "Neg",
    "OneHot",
    "OnesLike",
    "Pow",
    "ReLU",
    "RealDiv",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceSum",
    "Reshape",
    "Shape",
    "Sigmoid",
    "Softmax",
    "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
    "Sqrt",
    "Square",
    "Squeeze",
    "Sub",
    "Tanh",
    "Tile",
    "Transpose",
    "ZerosLike",
]


class _Computation(Primitive):
    """A primitive that calls a function."""

    _function: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__(type(self).__name__)

    def __call__(self, *args: Any) -> Any:
        """Return the function's result."""
        return type(self)._function(*args)


def as_primitive(name: str, function: Callable[..., Any], module: str = __name__) -> type[_Computation]:
    """Return a primitive class, defined in ``module``, whose instances call the function."""
    text = f"``{function.__name__}`` as an object: {function.__doc__}"
    return type(name, (_Computation,), {"_function": staticmethod(function), "__doc__": text, "__module__": module})


Abs = as_primitive("Abs", math_func.abs)
Add = as_primitive("Add", math_func.add)
Assign = as_primitive("Assign", parameter_func.assign)
AssignAdd = as_primitive("AssignAdd", parameter_func.assign_add)
AssignSub = as_primitive("AssignSub", parameter_func.assign_sub)
Cast = as_primitive("Cast", array_func.cast)
Depend = as_primitive("Depend", array_func.depend)
Div = as_primitive("Div", math_func.div)
Equal = as_primitive("Equal", math_func.equal)
Exp = as_primitive("Exp", math_func.exp)
ExpandDims = as_primitive("ExpandDims", array_func.expand_dims)
Fill = as_primitive("Fill", array_func.fill)
Flatten = as_primitive("Flatten", array_func.flatten)
Log = as_primitive("Log", math_func.log)
Maximum = as_primitive("Maximum", math_func.maximum)
Minimum = as_primitive("Minimum", math_func.minimum)
Mul = as_primitive("Mul", math_func.mul)
Neg = as_primitive("Neg", math_func.neg)
OnesLike = as_primitive("OnesLike", array_func.ones_like)
Pow = as_primitive("Pow", math_func.pow)
ReLU = as_primitive("ReLU", nn_func.relu)
RealDiv = as_primitive("RealDiv", math_func.div)
Reshape = as_primitive("Reshape", array_func.reshape)
Shape = as_primitive("Shape", array_func.shape)
Sigmoid = as_primitive("Sigmoid", nn_func.sigmoid)
Sqrt = as_primitive("Sqrt", math_func.sqrt)
Square = as_primitive("Square", math_func.square)
Sub = as_primitive("Sub", math_func.sub)
Tanh = as_primitive("Tanh", nn_func.tanh)
Tile = as_primitive("Tile", array_func.tile)
Transpose = as_primitive("Transpose", array_func.transpose)
ZerosLike = as_primitive("ZerosLike", array_func.zeros_like)


class Identity(Primitive):
    """The identity."""

    def __init__(self) -> None:
        super().__init__("Identity")

    def __call__(self, x: Tensor) -> Tensor:
        """Return the tensor itself."""
        return x


class MatMul(Primitive):
    """The matrix product of two tensors, each optionally transposed first."""

    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        super().__init__("MatMul")
        self.add_prim_attr("transpose_a", transpose_a)
        self.add_prim_attr("transpose_b", transpose_b)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the product."""
        left = torch.swapaxes(x, -1, -2) if self.attrs["transpose_a"] else x
        right = torch.swapaxes(y, -1, -2) if self.attrs["transpose_b"] else y
        return math_func.matmul(left, right)  # type: ignore[arg-type]


class BiasAdd(Primitive):
    """The input plus a bias for each entry of its second axis."""

    def __init__(self, data_format: str = "NCHW") -> None:
        super().__init__("BiasAdd")
        self.add_prim_attr("data_format", data_format)

    def __call__(self, input_x: Tensor, bias: Tensor) -> Tensor:
        """Return the sum."""
        return cast(Tensor, wrap(input_x + bias.reshape(-1, *(1,) * (input_x.dim() - 2))))


class AlongAxis(Primitive):
    """A primitive whose constructor takes an axis."""

    _function: Callable[..., Any]

    def __init__(self, axis: Any = -1) -> None:
        super().__init__(type(self).__name__)
        self.add_prim_attr("axis", axis)

    def __call__(self, *args: Any) -> Any:
        """Return the function's result along the axis."""
        return type(self)._function(*args, axis=self.attrs["axis"])


class Softmax(AlongAxis):
    """``ops.softmax`` along an axis."""

    _function = staticmethod(nn_func.softmax)


class LogSoftmax(AlongAxis):
    """``ops.log_softmax`` along an axis."""

    _function = staticmethod(nn_func.log_softmax)


class OneHot(AlongAxis):
    """``ops.one_hot`` on a new axis."""

    _function = staticmethod(array_func.one_hot)


class Concat(AlongAxis):
    """``ops.cat`` along an axis."""

    _function = staticmethod(array_func.cat)

    def __init__(self, axis: int = 0) -> None:
        super().__init__(axis)


class Squeeze(AlongAxis):
    """``ops.squeeze`` of some axes, or of all axes of length 1."""

    _function = staticmethod(array_func.squeeze)

    def __init__(self, axis: Any = ()) -> None:
        super().__init__(axis)


class Argmax(Primitive):
    """The index of the greatest element along an axis, in dtype ``output_type``."""

    def __init__(self, axis: int = -1, output_type: Any = torch.int32) -> None:
        super().__init__("Argmax")
        self.add_prim_attr("axis", axis)
        self.add_prim_attr("output_type", torch_dtype(output_type))

    def __call__(self, input_x: Tensor) -> Tensor:
        """Return the indices."""
        return cast(Tensor, wrap(torch.argmax(input_x, self.attrs["axis"]).to(self.attrs["output_type"])))


class Reduction(Primitive):
    """A primitive that reduces axes; ``keep_dims`` keeps them with the length 1."""

    _function: Callable[..., Any]

    def __init__(self, keep_dims: bool = False) -> None:
        super().__init__(type(self).__name__)
        self.add_prim_attr("keep_dims", keep_dims)

    def __call__(self, x: Tensor, axis: Any = ()) -> Any:
        """Return the result over these axes, or over all."""
        return type(self)._function(x, axis, self.attrs["keep_dims"])


class ReduceMean(Reduction):
    """The mean over axes."""

    _function = staticmethod(math_func.mean)


class ReduceMax(Reduction):
    """The maximum over axes."""

    _function = staticmethod(math_func.max_over)


class ReduceMin(Reduction):
    """The minimum over axes."""

    _function = staticmethod(math_func.min_over)


class ReduceSum(Reduction):
    """The sum over axes; with ``skip_mode``, an empty tuple of axes reduces nothing."""

    _function = staticmethod(math_func.sum_over)

    def __init__(self, keep_dims: bool = False, skip_mode: bool = False) -> None:
        super().__init__(keep_dims)
        self.add_prim_attr("skip_mode", skip_mode)

    def __call__(self, x: Tensor, axis: Any = ()) -> Any:
        """Return the result over these axes, or over all."""
        return x if self.attrs["skip_mode"] and axis in ((), []) else super().__call__(x, axis)


class SoftmaxCrossEntropyWithLogits(Primitive):
    """The cross entropy of each row, and its gradient."""

    def __init__(self) -> None:
        super().__init__("SoftmaxCrossEntropyWithLogits")

    def __call__(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the losses (N,) and their gradients (N, C) with respect to the logits."""
        losses = cross_entropy_of_rows(logits, labels)
        gradient = torch.softmax(logits, -1) - labels
        return cast(tuple[Tensor, Tensor], wrap((losses, gradient.detach())))


class SparseSoftmaxCrossEntropyWithLogits(Primitive):
    """The mean cross entropy of rows and classes; with ``is_grad`` its gradient with respect to the logits."""

    def __init__(self, is_grad: bool = False) -> None:
        super().__init__("SparseSoftmaxCrossEntropyWithLogits")
        self.add_prim_attr("is_grad", is_grad)

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, or the gradient (N, C)."""
        if not self.attrs["is_grad"]:
            return cast(Tensor, wrap(functional.cross_entropy(logits, labels.long())))
        hot = functional.one_hot(labels.long(), logits.shape[-1])
        return cast(Tensor, wrap((torch.softmax(logits, -1) - hot) / len(labels)))
