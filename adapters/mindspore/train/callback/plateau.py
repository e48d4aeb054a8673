"""Callbacks that follow a metric, or set the learning rate (source: MindSpore 2.10.0)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_float, check_int, check_value_type
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.communication import comm_func, get_group_size
from collshim.mindspore.context import ParallelMode, get_auto_parallel_context
from collshim.mindspore.log import warning
from collshim.mindspore.ops.function import assign
from collshim.mindspore.tensor import Tensor
from collshim.mindspore.train.callback.callback import Callback
from collshim.mindspore.train.serialization import load_param_into_net

__all__ = ["EarlyStopping", "History", "LearningRateScheduler", "ReduceLROnPlateau"]
_FALLING = {"hausdorff_distance", "mae", "mse", "loss", "perplexity", "eval_loss"}
_FALLING |= {"mean_surface_distance", "root_mean_square_distance"}


class _Following(Callback):
    """A callback that compares a metric with its best value, after every epoch.

    If the parallel mode is not "stand_alone", it takes the mean over all ranks, so all ranks decide the same.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float) -> None:
        of = type(self).__name__
        self.monitor = check_value_type("monitor", monitor, str, of)
        self.mode = check_value_type("mode", mode, str, of)
        self.min_delta = abs(check_value_type("min_delta", min_delta, (float, int), of))
        if mode not in ("auto", "min", "max"):
            refuse(ValueError, f"mode should be 'auto', 'min' or 'max', but got {mode}.")
        self._falls = mode == "min" or (mode == "auto" and monitor in _FALLING)
        self.on_train_begin(None)

    def on_train_begin(self, run_context: Any) -> None:
        """Forget the values of an earlier training."""
        self.wait, self.best = 0, math.inf if self._falls else -math.inf

    def _improves(self, value: float, than: float) -> bool:
        return bool(value < than - self.min_delta if self._falls else value > than + self.min_delta)

    def _value(self, facts: Any) -> float | None:
        """Return the metric; None if there is none."""
        results = facts.get("eval_results", {})
        found = _loss(facts.get("net_outputs")) if self.monitor == "loss" else results.get(self.monitor)
        if found is None:
            known = sorted({"loss", *results})
            warning(f"{type(self).__name__} needs {self.monitor}, which is not available. Available are: {known}")
            return None
        if np.ndim(found):
            refuse(ValueError, f"{type(self).__name__}: the monitored value should be a scalar, but got {found}")
        if get_auto_parallel_context("parallel_mode") == ParallelMode.STAND_ALONE or get_group_size() == 1:
            return float(found)
        total: Any = comm_func.all_reduce(Tensor(float(found)))[0]  # also if it is 0, which MindSpore takes for none
        return float(total) / get_group_size()


class EarlyStopping(_Following):
    """Stop the training if a metric has not improved for ``patience`` epochs.

    Args:
        monitor: "loss", "eval_loss" or a metric's name; the last two need ``Model.fit``.
        min_delta: the least change that is an improvement.
        patience: the number of epochs.
        verbose: whether to print the epoch.
        mode: "min" or "max": which values are better; "auto" decides by the name.
        baseline: a value that an improvement must also exceed.
        restore_best_weights: whether to end with the parameters of the best epoch.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: ``mode`` is unknown, or ``patience`` negative; in training, the metric is not one number.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.patience = check_int(patience, "patience", "EarlyStopping", least=0)
        self.verbose = check_bool(verbose, "verbose", "EarlyStopping")
        self.restore_best_weights = check_bool(restore_best_weights, "restore_best_weights", "EarlyStopping")
        self.baseline = min_delta if baseline else None  # as in MindSpore, which takes the other argument

    def on_train_begin(self, run_context: Any) -> None:
        """Forget the values of an earlier training."""
        super().on_train_begin(run_context)
        self.stopped_epoch, self._weights = 0, None

    def on_train_epoch_end(self, run_context: Any) -> None:
        """Request a stop if the metric has not improved."""
        facts = run_context.original_args()
        current = self._value(facts)
        if current is None:
            return
        self.wait += 1
        better = self._improves(current, self.best)
        if self.restore_best_weights and (better or self._weights is None):
            self._weights = copy.deepcopy(facts.train_network.parameters_dict())
        if better:
            self.best = current
            if self.baseline is None or self._improves(current, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = facts.cur_epoch_num
            run_context.request_stop()
            if self._weights is not None:
                load_param_into_net(facts.train_network, self._weights)

    def on_train_end(self, run_context: Any) -> None:
        """Print the epoch."""
        if self.stopped_epoch > 0 and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping")


class ReduceLROnPlateau(_Following):
    """Multiply the learning rate by ``factor`` if a metric has not improved for ``patience`` epochs.

    Args:
        monitor: "loss", "eval_loss" or a metric's name; the last two need ``Model.fit``.
        factor: a number between 0 and 1.
        patience: the number of epochs.
        verbose: whether to print the new learning rate.
        mode: "min" or "max": which values are better; "auto" decides by the name.
        min_delta: the least change that is an improvement.
        cooldown: the number of epochs after a reduction that are not counted.
        min_lr: the least learning rate.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or ``mode`` unknown; in training, the metric is not one number, or the
            learning rate is a schedule.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.factor = check_float(factor, "factor", "ReduceLROnPlateau", 0.0, 1.0, "()")
        self.patience = check_int(patience, "patience", "ReduceLROnPlateau", least=0)
        self.verbose = check_bool(verbose, "verbose", "ReduceLROnPlateau")
        self.cooldown = check_int(cooldown, "cooldown", "ReduceLROnPlateau", least=0)
        self.min_lr = check_value_type("min_lr", min_lr, (float, int), "ReduceLROnPlateau")

    def on_train_begin(self, run_context: Any) -> None:
        """Forget the values of an earlier training."""
        super().on_train_begin(run_context)
        self.cooldown_counter = 0

    def on_train_epoch_end(self, run_context: Any) -> None:
        """Reduce the learning rate if the metric has not improved."""
        facts = run_context.original_args()
        rate = facts.optimizer.learning_rate
        if not isinstance(rate, Parameter):
            text = "should have one learning rate for all steps and parameters"
            refuse(ValueError, f"ReduceLROnPlateau: the optimizer {text}, but got {type(rate).__name__}")
        current = self._value(facts)
        if current is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.wait = self.cooldown_counter - 1, 0
        if self._improves(current, self.best):
            self.best, self.wait = current, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(rate, facts)

    def _reduce(self, rate: Any, facts: Any) -> None:
        if float(rate) > self.min_lr:
            assign(rate, max(float(rate.detach() * self.factor), self.min_lr))
            if self.verbose:
                print(f"Epoch {facts.cur_epoch_num:05d}: ReduceLROnPlateau reducing learning rate to {float(rate)}.")
        self.cooldown_counter, self.wait = self.cooldown, 0


class LearningRateScheduler(Callback):
    """Set the learning rate to ``learning_rate_function(rate, step)`` after every step."""

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context: Any) -> None:
        """Set the learning rate."""
        facts = run_context.original_args()
        old = float(str(facts.optimizer.learning_rate.asnumpy()))
        new = self.learning_rate_function(old, facts.cur_step_num)
        if not math.isclose(old, new, rel_tol=1e-10):
            assign(facts.optimizer.learning_rate, new)


class History(Callback):
    """Collect each epoch's last output and metrics in ``history``, lists by name; the epochs are in ``epoch``."""

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] | None = None

    def begin(self, run_context: Any) -> None:
        """Start a new list of epochs."""
        self.epoch = {"epoch": []}

    def epoch_end(self, run_context: Any) -> None:
        """Collect the epoch's values."""
        facts = run_context.original_args()
        (self.epoch or {"epoch": []})["epoch"].append(facts.get("cur_epoch_num", 1))
        outputs = facts.net_outputs
        first = outputs[0] if isinstance(outputs, list | tuple) and isinstance(outputs[0], torch.Tensor) else outputs
        own = np.mean(first.detach().numpy()) if isinstance(first, torch.Tensor) else first
        for name, value in {"net_output": own, **(facts.get("metrics") or {})}.items():
            self.history.setdefault(name, []).append(value)


def _loss(outputs: Any) -> Any:
    """Return the mean of the loss, or the first output."""
    if isinstance(outputs, list | tuple):
        return float(outputs[0]) if isinstance(outputs[0], torch.Tensor) and outputs[0].numel() == 1 else outputs[0]
    return float(outputs.detach().to(torch.float32).mean()) if isinstance(outputs, torch.Tensor) else outputs
