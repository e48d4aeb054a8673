"""Training steps with a scaled loss, of ``mindspore.nn`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.gradients import value_and_grad
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell
from collshim.mindspore.tensor import Tensor, wrap

__all__ = [
    "DynamicLossScaleUpdateCell",
    "FixedLossScaleUpdateCell",
    "TrainOneStepWithLossScaleCell",
    "are_finite",
]


def are_finite(tensors: Sequence[Any]) -> Tensor:
    """Return whether all elements of all tensors are finite, as a 0-d tensor."""
    return cast(Tensor, wrap(torch.stack([torch.isfinite(each).all() for each in tensors]).all()))


class DynamicLossScaleUpdateCell(Cell):
    """A Cell that updates a loss scale: smaller after an overflow, greater after ``scale_window`` steps without one.

    Args:
        loss_scale_value: the loss scale at first.
        scale_factor: the factor by which it changes; it never falls below 1.
        scale_window: the number of steps.
    """

    def __init__(self, loss_scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__()
        self.loss_scale_value, self.scale_factor = loss_scale_value, scale_factor
        self.scale_window = Tensor(scale_window, torch.int32)
        self.cur_iter = Parameter(torch.tensor(1, dtype=torch.int32), name="current_iterator_step")
        self.last_overflow_iter = Parameter(torch.tensor(0, dtype=torch.int32), name="last_overflow_iterator_step")

    def get_loss_scale(self) -> float:
        """Return the loss scale at first."""
        return self.loss_scale_value

    def construct(self, loss_scale: Any, overflow: Any) -> Any:
        """Write the next scale into ``loss_scale``, and return ``overflow``."""
        now = int(self.cur_iter)
        if bool(overflow):
            loss_scale.copy_(torch.clamp(loss_scale / self.scale_factor, min=1))
            self.last_overflow_iter.fill_(now)
        elif now - int(self.last_overflow_iter) >= int(self.scale_window):
            loss_scale.mul_(self.scale_factor)
            self.last_overflow_iter.fill_(now)
        self.cur_iter.add_(1)
        return overflow


class FixedLossScaleUpdateCell(Cell):
    """A Cell that leaves the loss scale as it is."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self) -> float:
        """Return the loss scale."""
        return self.loss_scale_value

    def construct(self, _: Any, overflow: Any) -> Any:
        """Return ``overflow``."""
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """A training step whose loss is scaled; if a gradient is not finite, the optimizer does not update.

    Gradients are divided by the scale, then reduced over the ranks as in TrainOneStepCell. Every rank looks at the
    reduced gradients, so all ranks skip the same steps.

    Args:
        network: a Cell that returns a loss.
        optimizer: an optimizer of its parameters.
        scale_sense: the loss scale as a tensor with one element; or a Cell that updates it.

    Raises:
        TypeError: ``scale_sense`` is neither a Cell nor a tensor.
        ValueError: ``scale_sense`` has more than one element.
    """

    def __init__(self, network: Cell, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer)
        self.loss_scaling_manager: Cell | None = None
        if isinstance(scale_sense, Cell):
            scale: Any = Tensor(cast(Any, scale_sense).get_loss_scale(), torch.float32)
        elif isinstance(scale_sense, torch.Tensor):
            scale = scale_sense
            if tuple(scale.shape) not in ((), (1,)):
                text = f"the shape of 'scale_sense' must be (1,) or (), but got {tuple(scale.shape)}."
                refuse(ValueError, f"For 'TrainOneStepWithLossScaleCell', {text}")
        else:
            text = f"must be Cell or Tensor, but got 'scale_sense' type: {type(scale_sense)}."
            refuse(TypeError, f"For 'TrainOneStepWithLossScaleCell', the 'scale_sense' {text}")
        self.scale_sense = Parameter(scale, name="scale_sense", requires_grad=False)
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense

    def construct(self, *inputs: Any) -> Any:
        """Return this rank's loss, whether a gradient overflowed, and the loss scale."""
        scale = Tensor(self.scale_sense)
        loss, grads = value_and_grad(self._scaled, None, list(self.weights), has_aux=True)(*inputs)
        grads = tuple((grad * (1.0 / scale)).to(grad.dtype) for grad in grads)
        if self.reducer_flag:
            grads = self.grad_reducer(grads)
        overflow = self.process_loss_scale(self.get_overflow_status(None, grads))
        if not bool(overflow):
            self.optimizer(grads)
        return loss[1], overflow, scale

    def _scaled(self, *inputs: Any) -> tuple[Any, Any]:
        loss = self.network(*inputs)
        return loss * Tensor(self.scale_sense).to(loss.dtype).reshape(()), loss

    def set_sense_scale(self, sens: Any) -> None:
        """Replace the loss scale.

        Raises:
            TypeError: ``sens`` is not a tensor.
        """
        if not isinstance(sens, torch.Tensor):
            refuse(TypeError, f"The input type must be Tensor, but got {type(sens)}")
        self.scale_sense.set_data(sens)

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """Return a pair for ``get_overflow_status``: nothing has to be prepared."""
        return Tensor([0.0]), compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Return whether some gradient is not finite."""
        return cast(Tensor, torch.logical_not(are_finite(compute_output)))

    def process_loss_scale(self, overflow: Any) -> Any:
        """Update the loss scale if a Cell does so, and return ``overflow``."""
        if self.loss_scaling_manager is None:
            return overflow
        with torch.no_grad():
            return self.loss_scaling_manager(self.scale_sense, overflow)
