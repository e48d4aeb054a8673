"""``mindspore.nn.wrap``: Cells around a network (source: MindSpore 2.10.0)."""

from collshim.mindspore.nn.wrap import cell_wrapper, grad_reducer
from collshim.mindspore.nn.wrap.cell_wrapper import *  # noqa: F403
from collshim.mindspore.nn.wrap.grad_reducer import *  # noqa: F403
from collshim.mindspore.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
)

__all__ = ["DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "TrainOneStepWithLossScaleCell"]
__all__ += cell_wrapper.__all__
__all__ += grad_reducer.__all__
