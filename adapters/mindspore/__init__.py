"""MindSpore's communication, and the other parts of a data-parallel step: put ``collshim.`` in front of the import.

    mindspore.communication             init, ranks and groups; ``comm_func``, the functional collectives
    mindspore.ops                       primitives (AllReduce, ...), ``ops.communication``, some functions
    mindspore.mint.distributed          torch's spelling, in place
    mindspore.nn                        Cell, DistributedGradReducer
    mindspore.Tensor, Parameter         torch tensors with MindSpore's methods
    mindspore.float32, ...              torch's dtypes

The collectives also take torch tensors, NumPy arrays, CuPy arrays and anything with DLPack, and results are of the
input's type. Programs run line by line in both modes; "Ascend" and "GPU" are only names, and tensors are on the CPU.
Any other name raises AttributeError. Sources: the reference manual and behaviour of MindSpore 2.10.0.
"""

from __future__ import annotations

import collshim.mindspore.communication._comm_helper  # noqa: F401  # used by other packages
from collshim.adapting.absent import refuse_everywhere, saying
from collshim.mindspore import common, communication, context, dataset, hal, log, mint, nn, ops, runtime, train
from collshim.mindspore.common import (
    Parameter,
    ParameterTuple,
    dtype,
    from_numpy,
    get_seed,
    is_tensor,
    manual_seed,
    mutable,
    set_seed,
)
from collshim.mindspore.common.dtype import *  # noqa: F403  # its names are also here
from collshim.mindspore.common.jit import jit, jit_class
from collshim.mindspore.context import (
    GRAPH_MODE,
    PYNATIVE_MODE,
    ParallelMode,
    get_auto_parallel_context,
    get_context,
    get_ps_context,
    reset_auto_parallel_context,
    set_auto_parallel_context,
    set_context,
    set_device,
    set_ps_context,
)
from collshim.mindspore.gradients import get_grad, grad, value_and_grad
from collshim.mindspore.tensor import Tensor, tensor
from collshim.mindspore.train import *  # noqa: F403  # its names are also here

# isort: split
from collshim.mindspore import amp  # needs nn, which mint must have loaded

__version__ = "2.10.0"
"""The MindSpore version that this package behaves like."""

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "ParallelMode",
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "amp",
    "common",
    "communication",
    "context",
    "dataset",
    "dtype",
    "from_numpy",
    "get_auto_parallel_context",
    "get_context",
    "get_grad",
    "get_ps_context",
    "get_seed",
    "grad",
    "hal",
    "is_tensor",
    "jit",
    "jit_class",
    "log",
    "manual_seed",
    "mint",
    "mutable",
    "nn",
    "ops",
    "reset_auto_parallel_context",
    "runtime",
    "set_auto_parallel_context",
    "set_context",
    "set_device",
    "set_ps_context",
    "set_seed",
    "tensor",
    "train",
    "value_and_grad",
]
__all__ += dtype.__all__
__all__ += train.__all__

__getattr__ = saying(__name__)
refuse_everywhere(__name__)
