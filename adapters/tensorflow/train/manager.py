"""``tf.train.CheckpointManager``: keeps the latest checkpoints. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from collshim.errors import ArgumentValueError
from collshim.tensorflow.train import files
from collshim.tensorflow.train.checkpoint import Checkpoint, CheckpointOptions


class CheckpointManager:
    """Saves checkpoints as ``NAME-COUNT`` in a folder, and deletes older ones.

    Args:
        checkpoint: the ``tf.train.Checkpoint``.
        directory: the folder, which is created at the first save.
        max_to_keep: the number of checkpoints to keep; None for all.
        keep_checkpoint_every_n_hours: a checkpoint that would be deleted is kept if the last one kept for this reason
            is this much older.
        checkpoint_name: the first part of the checkpoints' names.
        step_counter: a variable that counts steps.
        checkpoint_interval: the least number of steps between two checkpoints; before that, ``save`` does nothing.
        init_fn: a function that ``restore_or_initialize`` calls if there is no checkpoint.
        last_checkpoint_step: the step at which the first interval begins.

    Raises:
        ValueError: ``max_to_keep`` is below 1, or there is an interval but no counter.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ArgumentValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ArgumentValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint, self._directory, self._name = checkpoint, str(os.fspath(directory)), checkpoint_name
        self._max_to_keep, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._counter, self._interval, self._init_fn = step_counter, checkpoint_interval, init_fn
        self._last_step, self._preserved = last_checkpoint_step, time.time()
        found = files.state(self._directory)
        kept = [] if found is None else found.all_model_checkpoint_paths
        times = files.timestamps(self._directory) if found is not None else []
        self._kept = dict(zip(kept, times if len(times) == len(kept) else [self._preserved] * len(kept), strict=True))
        self._latest = None if found is None else found.model_checkpoint_path

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint_interval(self) -> int | None:
        """The least number of steps between two checkpoints, or None."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the latest checkpoint; None if there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints that are subject to deletion, the oldest first."""
        return list(self._kept)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> str | None:
        """Save a checkpoint, delete the oldest if there are too many, and return the prefix.

        Args:
            checkpoint_number: the number in the name; by default the number of calls.
            check_interval: whether to save only after ``checkpoint_interval`` steps; before, the result is None. With
                an interval, the result is also None if this step was already saved.
            options: see ``tf.train.CheckpointOptions``.
        """
        if self._interval is not None and not self._is_due(check_interval):
            return None
        self._checkpoint.save_counter.assign_add(1)
        number = int(self._checkpoint.save_counter if checkpoint_number is None else checkpoint_number)
        prefix = self._checkpoint.write(os.path.join(self._directory, f"{self._name}-{number}"), options)
        self._kept.pop(prefix, None)
        self._kept[prefix], self._latest = time.time(), prefix
        self._sweep()
        files.write_state(self._directory, prefix, list(self._kept), list(self._kept.values()), self._preserved)
        return prefix

    def _is_due(self, check_interval: bool) -> bool:
        """Return whether to save this step; if so, record it as the last step that was saved."""
        assert self._interval is not None
        step, last = int(self._counter), self._last_step
        if last is not None and (step == last or (check_interval and step < last + self._interval)):
            return False
        self._last_step = step
        return True

    def _sweep(self) -> None:
        """Delete the oldest checkpoints, or stop managing those that are kept permanently."""
        while self._max_to_keep and len(self._kept) > self._max_to_keep:
            prefix, saved = next(iter(self._kept.items()))
            del self._kept[prefix]
            if self._hours and saved - self._hours * 3600 >= self._preserved:
                self._preserved = saved
            else:
                files.delete(prefix)

    def sync(self) -> None:
        """Do nothing: saved checkpoints are already in their files."""

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint, and return its prefix; if there is none, call ``init_fn``, and return None."""
        if self._latest is not None:
            self._checkpoint.restore(self._latest)
            if self._interval is not None:
                self._last_step = int(self._counter)
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
        return None
