"""``oneflow.nn``: torch's modules with OneFlow's tensors and devices; DistributedDataParallel; ``Graph``."""

from __future__ import annotations

import torch

from collshim.adapting import fall_through
from collshim.oneflow._absent import REFUSED, below
from collshim.oneflow.nn import functional as functional
from collshim.oneflow.nn import parallel as parallel
from collshim.oneflow.nn.graph import Graph as Graph
from collshim.oneflow.nn.modules.module import Module as Module
from collshim.oneflow.nn.modules.module import adapt
from collshim.oneflow.nn.parameter import Parameter as Parameter

__getattr__ = fall_through.names(__name__, [torch.nn], below(REFUSED, "nn"), adapt)
