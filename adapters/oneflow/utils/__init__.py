from __future__ import annotations

from torch import utils

from collshim.adapting import fall_through
from collshim.oneflow._absent import REFUSED, below
from collshim.oneflow.utils import data as data
from collshim.oneflow.utils import tensor as tensor

__getattr__ = fall_through.names(__name__, [utils], below(REFUSED, "utils"))
