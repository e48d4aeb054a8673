"""``PreemptionCheckpointHandler``: all ranks save a checkpoint, and exit, if one of them is about to be stopped.

Before each step the ranks tell each other whether one has been told so: by SIGTERM, or by a function of the program.
Then they train one step more, save, and exit, as TensorFlow's workers do. Source: TensorFlow 2.21, two workers on CPU.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.errors import ArgumentError, CollshimError, also
from collshim.tensorflow.distribute.cluster import world_of
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.train.checkpoint import Checkpoint
from collshim.tensorflow.train.manager import CheckpointManager
from collshim.tensorflow.variable import Variable

_RESTART_CODE = 42
_STEPS_KEPT = 6  # a last checkpoint is begun this many steps before the end of the grace period


class TerminationConfig:
    """How a program is told that it will be stopped, and what it does then.

    Args:
        termination_watcher_fn: returns True if this rank will be stopped; it is called before each step, and must not
            wait. None: SIGTERM tells it.
        exit_fn: called on every rank after the last checkpoint; None: ``sys.exit(42)``.
        grace_period: the seconds between the notice and the stop. If there are any, a checkpoint is saved at once, and
            training goes on until a last one towards their end.
        save_fn: saves a checkpoint in place of the manager.
    """

    def __init__(
        self,
        termination_watcher_fn: Callable[[], bool] | None = None,
        exit_fn: Callable[[], Any] | None = None,
        grace_period: float | None = None,
        save_fn: Callable[..., Any] | None = None,
    ) -> None:
        self.termination_watcher_fn = termination_watcher_fn
        self.exit_fn = exit_fn
        self.grace_period = grace_period
        self.save_fn = save_fn


class PreemptionCheckpointHandler:
    """Restores the latest checkpoint, runs training steps, and saves if a rank is about to be stopped.

    All ranks call ``run``, or ``save_checkpoint_if_preempted``, equally often.

    Args:
        cluster_resolver: the strategy's, or None.
        checkpoint_or_checkpoint_manager: the checkpoint, which the first rank writes, or this rank's manager.
        checkpoint_dir: the checkpoint's folder, the same on all ranks; the others write to a folder beside it, which
            they delete.
        termination_config: see ``TerminationConfig``.

    Raises:
        InvalidArgumentError: a checkpoint has no folder.
        NotImplementedError: the cluster has parameter servers.
        RuntimeError: the caller is not its process's main thread, which signals reach, and there is no
            ``termination_watcher_fn``.
    """

    def __init__(
        self,
        cluster_resolver: Any,
        checkpoint_or_checkpoint_manager: Checkpoint | CheckpointManager,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        termination_config: TerminationConfig | None = None,
    ) -> None:
        if isinstance(checkpoint_or_checkpoint_manager, Checkpoint) and not checkpoint_dir:
            raise invalid_argument("When a checkpoint is passed, a checkpoint_dir must be passed as well.")
        if cluster_resolver and "ps" in cluster_resolver.cluster_spec().as_dict():
            text = "PreemptionCheckpointHandler: the cluster has the job 'ps'; parameter servers are not supported"
            raise also(ArgumentError, NotImplementedError)(text)
        self._world = world_of(cluster_resolver)
        self._config = termination_config or TerminationConfig()
        self._temporary: Path | None = None
        self._manager = self._manager_of(checkpoint_or_checkpoint_manager, checkpoint_dir)
        self._checkpointed_runs = Variable(0, trainable=False, name="checkpointed_runs", dtype=torch.int64)
        self._restore(checkpoint_dir)
        self._run_counter = int(self._checkpointed_runs.numpy())
        self._step_time = 0.0
        self._told_at: float | None = None
        self._step_to_save: int | None = None
        self._is_last = (self._config.grace_period or 0) <= 0
        if self._config.termination_watcher_fn is None:
            self._watch_for_signal()

    def _manager_of(self, given: Checkpoint | CheckpointManager, folder: Any) -> CheckpointManager:
        """Return the manager that writes this rank's checkpoints."""
        if isinstance(given, CheckpointManager):
            return given
        if self._world.rank:
            own = Path(folder)
            self._temporary = own.parent / f"workertemp_{self._world.rank}"
            folder = self._temporary / own.name
        return CheckpointManager(given, folder, max_to_keep=1)

    def _restore(self, folder: Any) -> None:
        checkpoint = self._manager.checkpoint
        if not hasattr(checkpoint, "checkpointed_runs"):
            checkpoint.checkpointed_runs = self._checkpointed_runs
        reader = self._manager if self._temporary is None else CheckpointManager(checkpoint, folder, max_to_keep=1)
        reader.restore_or_initialize()

    def _watch_for_signal(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise also(CollshimError, RuntimeError)(
                f"PreemptionCheckpointHandler: rank {self._world.rank} of {self._world.size} is a thread, which no "
                "signal reaches: pass a TerminationConfig with a termination_watcher_fn"
            )
        signal.signal(signal.SIGTERM, lambda signum, frame: self._tell())

    def _tell(self) -> None:
        self._told_at = self._told_at or time.time()

    @property
    def total_run_calls(self) -> int:
        """The number of calls of ``run``, with those before the restart."""
        return self._run_counter

    def run(self, distributed_train_function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return ``distributed_train_function(*args, **kwargs)``; before that, save and exit if it is time to."""
        self._save_if_preempted()
        began = time.time()
        result = distributed_train_function(*args, **kwargs)
        self._run_counter += 1
        self._step_time += (time.time() - began - self._step_time) / self._run_counter
        return result

    def save_checkpoint_if_preempted(self, *args: Any, **kwargs: Any) -> None:
        """Save and exit if it is time to; the arguments are those of ``tf.train.CheckpointManager.save``."""
        self._save_if_preempted(*args, **kwargs)
        self._run_counter += 1

    @contextmanager
    def watch_preemption_scope(self) -> Iterator[None]:
        """Do nothing: ``run`` saves; the scope is for TPUs."""
        yield

    def _save_if_preempted(self, *args: Any, **kwargs: Any) -> None:
        if self._step_to_save is None:
            if self._agreed(self._is_due()):
                self._step_to_save = self._run_counter + 1
        elif self._step_to_save == self._run_counter:
            self._save(*args, **kwargs)
            if self._is_last:
                self._exit()
            else:
                self._is_last, self._step_to_save = True, None

    def _is_due(self) -> bool:
        """Return whether this rank wants a checkpoint: the last one, after an earlier one, is due later."""
        watch = self._config.termination_watcher_fn
        if self._told_at is None and watch is not None and watch():
            self._tell()
        if self._told_at is None:
            return False
        grace = self._config.grace_period or 0
        return grace <= 0 or not self._is_last or time.time() > self._told_at + grace - _STEPS_KEPT * self._step_time

    def _agreed(self, due: bool) -> bool:
        """Return whether any rank wants a checkpoint."""
        if self._world.size == 1:
            return due
        wanted: torch.Tensor = self._world.communicator.all_reduce(torch.tensor(int(due)), "max").wait()
        return bool(wanted)

    def _save(self, *args: Any, **kwargs: Any) -> None:
        self._checkpointed_runs.assign(self._run_counter)
        save = self._config.save_fn or self._manager.save
        save(*args, **kwargs)

    def _exit(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        if self._world.size > 1:  # a launcher stops the other ranks as soon as one exits
            self._world.communicator.barrier().wait()
        leave = self._config.exit_fn
        if leave is None:
            sys.exit(_RESTART_CODE)
        leave()


__getattr__ = saying(__name__)
