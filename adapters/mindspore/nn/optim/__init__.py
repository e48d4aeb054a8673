"""``mindspore.nn.optim``: optimizers (source: MindSpore 2.10.0)."""

from collshim.mindspore.nn.optim import adam, momentum, optimizer, sgd
from collshim.mindspore.nn.optim.adam import *  # noqa: F403
from collshim.mindspore.nn.optim.momentum import *  # noqa: F403
from collshim.mindspore.nn.optim.optimizer import *  # noqa: F403
from collshim.mindspore.nn.optim.sgd import *  # noqa: F403

__all__: list[str] = []
__all__ += adam.__all__
__all__ += momentum.__all__
__all__ += optimizer.__all__
__all__ += sgd.__all__
