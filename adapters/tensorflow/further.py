"""More names of ``tf`` itself, so that its own list stays readable."""

from __future__ import annotations

from collshim.tensorflow import debugging, ragged, sparse
from collshim.tensorflow.composites import RaggedTensor, SparseTensor
from collshim.tensorflow.debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank
from collshim.tensorflow.further_arrays import (
    argsort,
    boolean_mask,
    clip_by_global_norm,
    clip_by_norm,
    einsum,
    ensure_shape,
    map_fn,
    meshgrid,
    pad,
    repeat,
    reverse,
    roll,
    searchsorted,
    sequence_mask,
    sort,
    tensordot,
    unique,
)
from collshim.tensorflow.further_arrays import slice_ as slice
from collshim.tensorflow.further_math import (
    acos,
    asin,
    atan,
    cos,
    cosh,
    cumsum,
    reduce_logsumexp,
    sin,
    sinh,
    tan,
    truediv,
)
from collshim.tensorflow.initializers import (
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from collshim.tensorflow.name_scopes import get_current_name_scope
from collshim.tensorflow.python_functions import (
    case,
    custom_gradient,
    identity_n,
    numpy_function,
    py_function,
    switch_case,
)
from collshim.tensorflow.python_functions import tuple_ as tuple
from collshim.tensorflow.specs import RaggedTensorSpec, SparseTensorSpec, type_spec_from_value
from collshim.tensorflow.tensor_array import TensorArray

__all__ = [
    "Assert",
    "RaggedTensor",
    "RaggedTensorSpec",
    "SparseTensor",
    "SparseTensorSpec",
    "TensorArray",
    "acos",
    "argsort",
    "asin",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan",
    "boolean_mask",
    "case",
    "clip_by_global_norm",
    "clip_by_norm",
    "constant_initializer",
    "cos",
    "cosh",
    "cumsum",
    "custom_gradient",
    "debugging",
    "einsum",
    "ensure_shape",
    "get_current_name_scope",
    "identity_n",
    "map_fn",
    "meshgrid",
    "numpy_function",
    "ones_initializer",
    "pad",
    "py_function",
    "ragged",
    "random_normal_initializer",
    "random_uniform_initializer",
    "reduce_logsumexp",
    "repeat",
    "reverse",
    "roll",
    "searchsorted",
    "sequence_mask",
    "sin",
    "sinh",
    "slice",
    "sort",
    "sparse",
    "switch_case",
    "tan",
    "tensordot",
    "truediv",
    "tuple",
    "type_spec_from_value",
    "unique",
    "zeros_initializer",
]
