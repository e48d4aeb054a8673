"""OneFlow, over collshim and torch: ``import collshim.oneflow as flow``.

| what | where |
| --- | --- |
| the collectives, send and recv | ``flow.comm``; under torch's names ``flow.distributed`` |
| get_rank, get_world_size, get_local_rank, get_node_size | ``flow.env`` |
| DistributedDataParallel | ``flow.nn.parallel`` |
| tensors, modules, optimizers, data | torch's, if they mean the same; differences are written here |
| the decorators of OneFlow's tests | ``flow.unittest`` |
| global tensors, ``sbp``, ``placement`` | every rank keeps the whole tensor |
| ``nn.Graph`` | runs line by line |

A name that is not defined here is torch's of the same path. If the name has another meaning in torch, or has no
counterpart, it is refused with advice; ``_absent`` has the table.

There is no init call, as in OneFlow: the first use joins the world that MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK
describe, or a world of one. (If some of the four are missing, OneFlow warns and uses a world of one; here that is a
WorldError.) ``flow.comm`` also takes torch's tensors, NumPy arrays, CuPy arrays and anything with DLPack. dtypes and
shapes are torch's own objects, which print as ``torch.float32`` and ``torch.Size([2])``. ``device="cuda"`` is this
rank's GPU, number ``get_local_rank()``, as in OneFlow; on a machine without one it stands for the CPU if
``COLLSHIM_DEVICE=cpu`` is set.

Sources: the reference manual and behaviour of OneFlow 0.9.0.
"""

from __future__ import annotations

import torch as _torch
from torch import Size as Size
from torch import autograd as autograd
from torch import dtype as dtype

from collshim.adapting import fall_through as _fall_through
from collshim.adapting.absent import refuse_everywhere as _refuse_everywhere
from collshim.oneflow import _C as _C
from collshim.oneflow import _oneflow_internal as _oneflow_internal
from collshim.oneflow import amp as amp
from collshim.oneflow import boxing as boxing
from collshim.oneflow import comm as comm
from collshim.oneflow import cuda as cuda
from collshim.oneflow import distributed as distributed
from collshim.oneflow import env as env
from collshim.oneflow import framework as framework
from collshim.oneflow import jit as jit
from collshim.oneflow import nn as nn
from collshim.oneflow import optim as optim
from collshim.oneflow import sbp as sbp
from collshim.oneflow import utils as utils
from collshim.oneflow._absent import REFUSED as _REFUSED
from collshim.oneflow._absent import below as _below
from collshim.oneflow.amp import autocast as autocast
from collshim.oneflow.creation import Generator as Generator
from collshim.oneflow.creation import adapt as _adapt
from collshim.oneflow.creation import arange as arange
from collshim.oneflow.creation import dtypes as dtypes
from collshim.oneflow.creation import ones as ones
from collshim.oneflow.creation import tensor as tensor
from collshim.oneflow.creation import zeros as zeros
from collshim.oneflow.device_names import device as device
from collshim.oneflow.framework.check_point_v2 import load as load
from collshim.oneflow.framework.check_point_v2 import save as save
from collshim.oneflow.framework.tensor import Tensor as Tensor
from collshim.oneflow.functions import METHODS as _METHODS
from collshim.oneflow.functions import broadcast_like as broadcast_like
from collshim.oneflow.functions import cast as cast
from collshim.oneflow.functions import (
    convert_oneflow_dtype_to_numpy_dtype as convert_oneflow_dtype_to_numpy_dtype,
)
from collshim.oneflow.functions import global_to_global as global_to_global
from collshim.oneflow.functions import local_to_global as local_to_global
from collshim.oneflow.functions import matmul as matmul
from collshim.oneflow.functions import scatter as scatter
from collshim.oneflow.functions import to_global as to_global
from collshim.oneflow.functions import to_local as to_local
from collshim.oneflow.global_tensors import placement as placement
from collshim.oneflow.nn.functional import log_softmax as log_softmax
from collshim.oneflow.nn.functional import quick_gelu as quick_gelu
from collshim.oneflow.nn.functional import softmax as softmax

__version__ = "0.9.0"

globals().update(_METHODS)

_fall_through.install(__name__, "torch", _REFUSED)

__getattr__ = _fall_through.names(__name__, [_torch, _torch.nn.functional], _below(_REFUSED, ""), _adapt)
_refuse_everywhere(__name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_torch)} - _REFUSED.keys())
