"""``megengine.functional``: the computations between the collectives, and ``distributed``, the collectives."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.functional import distributed, elemwise, loss, math, metric, nn, tensor, utils
from collshim.megengine.functional.elemwise import *  # noqa: F403  # as in MegEngine
from collshim.megengine.functional.math import *  # noqa: F403
from collshim.megengine.functional.metric import topk_accuracy
from collshim.megengine.functional.nn import *  # noqa: F403
from collshim.megengine.functional.tensor import *  # noqa: F403

__all__ = ["distributed", "elemwise", "loss", "math", "metric", "nn", "tensor", "topk_accuracy", "utils"]

__getattr__ = saying(__name__)
