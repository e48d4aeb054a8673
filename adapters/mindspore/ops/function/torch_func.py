"""Functions of ``mindspore.ops`` that torch also has (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from collshim.mindspore._of_torch import numbers, of_torch, with_signatures
from collshim.mindspore.methods import products
from collshim.mindspore.reducing import along, deviation, every_axis, in_own_dtype, norm_of, places, product
from collshim.mindspore.slopes import hardswish, relu6
from collshim.mindspore.tensor import minus

_SIGNATURES = """
acos input
addcmul input tensor1 tensor2 value=1
all input axis=None keep_dims=False
amax input axis=None keepdims=False * initial=None where=None
amin input axis=None keepdims=False * initial=None where=None
any input axis=None keep_dims=False
argmin input axis=None keepdims=False
argsort input axis=-1 descending=False
asin input
atan input
atan2 input other
bitwise_and input other
bitwise_or input other
bitwise_xor input other
bmm input_x mat2
broadcast_to input shape
ceil input
chunk input chunks axis=0
clamp input min=None max=None
clip input min=None max=None
cos input
cosh input
cumsum x axis dtype=None
divide input other * rounding_mode=None
dot input other
elu input_x alpha=1.0
erf input
erfinv input
expm1 input
flip input dims
floor input
fmod input other
gather_d x dim index
gather_elements input dim index
ge input other
greater input other
gt input other
hardswish input
hstack tensors
index_select input axis index
isclose input other rtol=1e-05 atol=1e-08 equal_nan=False
isinf input
isnan input
l1_loss input target reduction='mean'
layer_norm input normalized_shape weight=None bias=None eps=1e-05
le input other
lerp input end weight
less input other
linspace start end steps
log10 input
log1p input
log2 input
logical_and input other
logical_not input
logical_or input other
logsumexp input dim keepdim=False
lt input other
masked_fill input_x mask value
masked_select input mask
max input axis=None keepdims=False * initial=None where=None
min input axis=None keepdims=False * initial=None where=None
mm input mat2
movedim x source destination
multiply input other
mv mat vec
narrow input axis start length
ne input other
negative input
nonzero input * as_tuple=False
norm A ord=None dim=None keepdim=False * dtype=None
not_equal input other
numel input
outer input vec2
permute input axis
prod input axis=None keep_dims=False dtype=None
reciprocal input
relu6 x
remainder input other
roll input shifts dims=None
round input * decimals=0
rsqrt input
scatter input axis index src
select condition input other
sign input
silu input
sin input
sinh input
softplus input beta=1 threshold=20
sort input_x axis=-1 descending=False
std input axis=None ddof=0 keepdims=False
subtract input other * alpha=1
swapaxes input axis0 axis1
tan input
tensor_add input other
tensor_div x y
tensor_mul input other
tensor_sub input other
topk input k dim=None largest=True sorted=True
tril input diagonal=0
triu input diagonal=0
true_divide dividend divisor
trunc input
unbind input dim=0
unique input
unstack input_x axis=0
var input axis=None ddof=0 keepdims=False
vstack inputs
where condition input other
"""


def _reduction(of: Any) -> Any:
    return lambda input, dim=None, keepdim=False: along(of, input, dim, keepdim)


def _spread(of: Any) -> Any:
    return lambda input, dim=None, ddof=0, keepdim=False: of(input, dim, int(ddof), keepdim)


def _extreme(of: Any) -> Any:
    def call(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        return (of(input), torch.tensor(0)) if dim is None else tuple(of(input, dim, keepdim))

    return call


def _unique(input: Any) -> Any:
    """Return the distinct elements in order of first occurrence, and each element's index among them."""
    values, inverse = torch.unique(input, return_inverse=True)
    count = len(values)
    first = torch.full((count,), input.numel()).scatter_reduce(
        0, inverse.reshape(-1), torch.arange(input.numel()), "amin"
    )
    order = torch.argsort(first)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(count)
    return values[order], rank[inverse].to(torch.int64 if input.dtype is torch.int64 else torch.int32)


def _subtract(input: Any, other: Any, alpha: Any = 1) -> Any:
    return minus(input, other if alpha == 1 else other * alpha)


_OTHER: dict[str, Callable[..., Any]] = {
    "addcmul": lambda input, first, second, value=1: torch.addcmul(input, first, second, value=value),
    "all": _reduction(torch.all),
    "amax": _reduction(torch.amax),
    "amin": _reduction(torch.amin),
    "any": _reduction(torch.any),
    "argmin": lambda input, dim=None, keepdim=False: torch.argmin(input, dim, keepdim and dim is not None).int(),
    "argsort": lambda input, dim=-1, descending=False: torch.argsort(input, dim, descending).int(),
    "cumsum": in_own_dtype,
    "divide": numbers(torch.divide),
    "dot": products,
    "elu": functional.elu,
    "gather_d": torch.gather,
    "gather_elements": torch.gather,
    "hardswish": hardswish,
    "l1_loss": functional.l1_loss,
    "layer_norm": functional.layer_norm,
    "logsumexp": lambda input, dim, keepdim=False: torch.logsumexp(input, every_axis(input, dim), keepdim),
    "max": _extreme(torch.max),
    "min": _extreme(torch.min),
    "norm": norm_of,
    "prod": lambda input, dim=None, keepdim=False, dtype=None: product(input, dim, keepdim, dtype),
    "relu6": relu6,
    "select": torch.where,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "sort": lambda input, dim=-1, descending=False: places(torch.sort(input, dim, descending)),
    "std": _spread(deviation),
    "subtract": _subtract,
    "tensor_add": torch.add,
    "tensor_div": torch.div,
    "tensor_mul": torch.mul,
    "tensor_sub": _subtract,
    "topk": lambda input, k, dim=None, largest=True, sorted=True: places(
        torch.topk(input, k, -1 if dim is None else dim, largest, sorted)
    ),
    "unique": _unique,
    "unstack": torch.unbind,
    "var": _spread(lambda input, dim, ddof, keep: torch.var(input, dim, correction=ddof, keepdim=keep)),
}
_BINARY = """
atan2 bitwise_and bitwise_or bitwise_xor fmod ge greater gt le less logical_and logical_or lt multiply ne not_equal
remainder true_divide
"""
_NAMED = {line.split()[0] for line in _SIGNATURES.strip().splitlines()} - _OTHER.keys()
_SAME = {name: getattr(torch, name) for name in _NAMED} | {
    name: numbers(getattr(torch, name)) for name in _BINARY.split()
}

_MADE = with_signatures(__name__, _SIGNATURES, _SAME | _OTHER)
_MADE["einsum"] = of_torch(__name__, torch, "einsum")["einsum"]
vars().update(_MADE)

__all__: list[str] = []
__all__ += list(_MADE)  # pyright: ignore[reportUnsupportedDunderAll]
