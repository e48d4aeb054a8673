"""``mindspore.mint``: collectives, a few layers, and the functions that torch also has (source: MindSpore 2.10.0)."""

from collections.abc import Callable
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.mindspore._of_torch import numbers, of_torch, with_signatures
from collshim.mindspore.mint import distributed, nn, optim
from collshim.mindspore.reducing import along, mean_of, product
from collshim.mindspore.tensor import minus

_FUNCTIONS = """
abs acos acosh add addbmm addcdiv addmm addmv all allclose amax amin any arange argmax argmin argsort asin asinh
atan atan2 atanh baddbmm bernoulli bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm broadcast_to cat
cdist ceil chunk clamp clone concat cos cosh count_nonzero cross cummax cummin cumprod cumsum diag diff div divide
dot dstack einsum empty empty_like eq equal erf erfc erfinv exp exp2 expm1 eye flatten flip float_power floor
floor_divide fmod frac full full_like gather greater greater_equal gt histc hstack imag index_add index_select
inverse isclose isfinite isinf isnan kthvalue le lerp less less_equal linspace log log10 log1p log2 logaddexp
logical_and logical_not logical_or logical_xor logsumexp lt masked_select matmul max maximum mean median meshgrid
min minimum mm mul multinomial mv nan_to_num nansum narrow ne neg negative nonzero norm normal not_equal ones
ones_like outer permute polar pow prod rand rand_like randint randint_like randn randn_like randperm ravel real
reciprocal remainder repeat_interleave reshape roll round rsqrt scatter scatter_add searchsorted select sigmoid sign
sin sinc sinh softmax sort split sqrt square squeeze stack std std_mean sub sum swapaxes t take tan tanh tile topk
trace transpose tril triu trunc unbind unique_consecutive unsqueeze var var_mean where xlogy zeros zeros_like
"""
_BINARY = """
eq greater greater_equal gt le less less_equal logical_and logical_or logical_xor lt maximum minimum ne not_equal
remainder
"""
_SIGNATURES = """
floor_divide input other
mean input dim=None keepdim=False * dtype=None
prod input dim=None keepdim=False * dtype=None
sub input other * alpha=1
sum input dim=None keepdim=False * dtype=None
"""
_OTHER: dict[str, Callable[..., Any]] = {
    "floor_divide": lambda input, other: torch.div(torch.as_tensor(input), other, rounding_mode="floor"),
    "mean": lambda input, dim=None, keepdim=False, dtype=None: mean_of(input, dim, keepdim, dtype),
    "prod": lambda input, dim=None, keepdim=False, dtype=None: product(input, dim, keepdim, dtype),
    "sub": lambda input, other, alpha=1: minus(input, other if alpha == 1 else other * alpha),
    "sum": lambda input, dim=None, keepdim=False, dtype=None: along(torch.sum, input, dim, keepdim, dtype=dtype),
}
_NUMBERS = {name: numbers(getattr(torch, name)) for name in _BINARY.split()}
_MADE = of_torch(__name__, torch, _FUNCTIONS)
_MADE |= with_signatures(__name__, "\n".join(f"{name} input other" for name in _NUMBERS), _NUMBERS)
_MADE |= with_signatures(__name__, _SIGNATURES, _OTHER)
vars().update(_MADE)

__all__ = ["distributed", "nn", "optim"]
__all__ += list(_MADE)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__ = saying(__name__)
