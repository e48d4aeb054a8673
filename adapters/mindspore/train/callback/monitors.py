"""``LossMonitor`` and ``TimeMonitor`` of ``mindspore.train`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_int
from collshim.mindspore.train.callback.callback import Callback

__all__ = ["LossMonitor", "TimeMonitor"]


class LossMonitor(Callback):
    """Print this rank's loss after every ``per_print_times`` steps; 0 prints nothing.

    Raises:
        TypeError: ``per_print_times`` is not an int.
        ValueError: ``per_print_times`` is negative; in training, the loss is NaN or infinite.
    """

    def __init__(self, per_print_times: int = 1) -> None:
        self._each = check_int(per_print_times, "per_print_times", "LossMonitor", least=0)
        self._last = 0

    def step_end(self, run_context: Any) -> None:
        """Print the loss."""
        facts = run_context.original_args()
        loss, epoch = _number(facts.net_outputs), facts.get("cur_epoch_num", 1)
        step = (facts.cur_step_num - 1) % facts.batch_num + 1
        if isinstance(loss, float) and not math.isfinite(loss):
            text = "loss is NAN or INF, training process cannot continue, terminating training."
            refuse(ValueError, f"In epoch: {epoch} step: {step}, {text}")
        if facts.cur_step_num < self._last:  # another training
            self._last = 0
        if self._each and facts.cur_step_num - self._last >= self._each:
            self._last = facts.cur_step_num
            print(f"epoch: {epoch} step: {step}, loss is {loss}", flush=True)

    def on_train_epoch_end(self, run_context: Any) -> None:
        """Print the metrics, if ``Model.fit`` evaluated the network."""
        facts = run_context.original_args()
        if facts.get("metrics"):
            print(f"Eval result: epoch {facts.cur_epoch_num}, metrics: {facts.metrics}")


class TimeMonitor(Callback):
    """Print the time of each epoch, and the mean time per step.

    Args:
        data_size: the number of steps, if the Model does not know it.
        data_time: whether to print the time of reading data too.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        self.data_size = data_size
        self.data_time = check_bool(data_time, "data_time", "TimeMonitor")
        self.epoch_time = self._since = time.time()
        self._reading = 0.0

    def epoch_begin(self, run_context: Any) -> None:
        """Start the epoch's timer."""
        self.epoch_time = self._since = time.time()
        self._reading = 0.0

    def on_train_step_begin(self, run_context: Any) -> None:
        """Add the time spent reading data."""
        self._reading += time.time() - self._since

    def on_train_step_end(self, run_context: Any) -> None:
        """Start the timer for reading data."""
        self._since = time.time()

    def epoch_end(self, run_context: Any) -> None:
        """Print the times."""
        facts = run_context.original_args()
        steps = check_int(facts.get("batch_num") or self.data_size, "data_size", "TimeMonitor", least=1)
        spent = (time.time() - self.epoch_time) * 1000
        each = spent / steps
        text = f"{facts.get('mode', '').title()} epoch time: {spent:5.3f} ms, per step time: {each:5.3f} ms"
        reading = f" (data time: {self._reading * 1000 / steps:5.3f} ms)" if self.data_time else ""
        print(text + reading, flush=True)


def _number(outputs: Any) -> Any:
    """Return the mean of a loss as a number; if there are several outputs, return the first one unchanged."""
    if isinstance(outputs, tuple | list):
        return outputs[0]
    return float(np.mean(outputs.detach().cpu().numpy())) if isinstance(outputs, torch.Tensor) else outputs
