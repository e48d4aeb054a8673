"""``mindspore.common``: tensors, dtypes, parameters, initializers (source: MindSpore 2.10.0)."""

from collshim.adapting.absent import saying
from collshim.mindspore.common import api, dtype, initializer, parameter, seed, tensor
from collshim.mindspore.common._mutable import from_numpy, is_tensor, manual_seed, mutable
from collshim.mindspore.common.dtype import *  # noqa: F403  # its names are also here
from collshim.mindspore.common.parameter import Parameter, ParameterTuple
from collshim.mindspore.common.seed import get_seed, set_seed
from collshim.mindspore.tensor import Tensor

__all__ = [
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "api",
    "dtype",
    "from_numpy",
    "get_seed",
    "initializer",
    "is_tensor",
    "manual_seed",
    "mutable",
    "parameter",
    "seed",
    "set_seed",
    "tensor",
]
__all__ += dtype.__all__

__getattr__ = saying(__name__)
