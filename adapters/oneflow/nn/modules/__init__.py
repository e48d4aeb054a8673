from __future__ import annotations

import torch

from collshim.adapting import fall_through
from collshim.oneflow.nn.modules.module import Module as Module
from collshim.oneflow.nn.modules.module import adapt

__getattr__ = fall_through.names(__name__, [torch.nn.modules, torch.nn], adapt=adapt)
