"""Cells of ``mindspore.nn`` around a network, its loss and its optimizer (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool
from collshim.mindspore.context import ParallelMode, get_auto_parallel_context
from collshim.mindspore.gradients import value_and_grad
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.optim.optimizer import Optimizer
from collshim.mindspore.nn.wrap.grad_reducer import DistributedGradReducer

__all__ = ["TrainOneStepCell", "WithEvalCell", "WithLossCell"]


class WithLossCell(Cell):
    """A network with its loss: ``loss_fn(backbone(data), label)``."""

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        """Return the loss."""
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """The network."""
        return self._backbone


class WithEvalCell(Cell):
    """A network with its loss, for evaluation; ``add_cast_fp32`` converts outputs and float labels to float32."""

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = check_bool(add_cast_fp32, "add_cast_fp32", self.cls_name)

    def construct(self, data: Any, label: Any) -> tuple[Any, Any, Any]:
        """Return the loss, the outputs and the labels."""
        outputs = self._network(data)
        if self.add_cast_fp32:
            outputs = outputs.to(torch.float32)
            label = label.to(torch.float32) if label.is_floating_point() else label
        return self._loss_fn(outputs, label), outputs, label


class TrainOneStepCell(Cell):
    """One step of training: the loss of ``network``, its gradients, and the optimizer's update.

    If ``parallel_mode`` is "data_parallel" or "hybrid_parallel" when the Cell is created, a call sums the gradients
    over all ranks, and divides them by the number of ranks if ``gradients_mean`` was set. All ranks must then call it.

    Args:
        network: a Cell that returns a loss.
        optimizer: an optimizer of its parameters.
        sens: the factor by which the gradients are multiplied; None for 1.
        return_grad: whether the result is a pair of the loss and the reduced gradients, a dict by name.

    Raises:
        ValueError: ``sens`` is 0.
    """

    def __init__(self, network: Cell, optimizer: Optimizer, sens: Any = None, return_grad: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self.network = network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        if sens is not None and sens == 0:
            refuse(ValueError, "The input argument of 'sens' can not be 0.")
        self.sens, self.return_grad = 1.0 if sens is None else sens, return_grad
        self.parallel_mode = get_auto_parallel_context("parallel_mode")
        self.reducer_flag = self.parallel_mode in (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
        if self.reducer_flag:
            self.grad_reducer = DistributedGradReducer(list(self.weights))

    def construct(self, *inputs: Any) -> Any:
        """Return this rank's loss, after the update."""
        loss, grads = value_and_grad(self.network, None, list(self.weights))(*inputs)
        if self.sens != 1:
            grads = tuple(grad * self.sens for grad in grads)
        if self.reducer_flag:
            grads = self.grad_reducer(grads)
        self.optimizer(grads)
        if not self.return_grad:
            return loss
        return loss, {weight.name: grad for weight, grad in zip(self.weights, grads, strict=True)}
