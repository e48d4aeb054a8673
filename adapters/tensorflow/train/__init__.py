"""``tf.train``: checkpoints, and descriptions of clusters. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from collshim.adapting.absent import saying
from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterDef, ClusterSpec, JobDef
from collshim.tensorflow.train import files
from collshim.tensorflow.train.checkpoint import Checkpoint, CheckpointOptions
from collshim.tensorflow.train.files import CheckpointState
from collshim.tensorflow.train.manager import CheckpointManager
from collshim.tensorflow.train.moving_averages import ExponentialMovingAverage
from collshim.tensorflow.train.reader import CheckpointReader

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "CheckpointOptions",
    "ClusterDef",
    "ClusterSpec",
    "ExponentialMovingAverage",
    "JobDef",
    "checkpoints_iterator",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]


_POLL = 1.0
"""The number of seconds between two checks of a folder, as in TensorFlow."""


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Return the prefix of a folder's latest checkpoint, for ``Checkpoint.restore``; None if there is none."""
    return files.latest(checkpoint_dir, latest_filename)


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """Return the prefixes of a folder's checkpoints; None if there is none."""
    return files.state(checkpoint_dir, latest_filename)


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """Yield the prefix of a folder's latest checkpoint; for each further one, wait for a later checkpoint.

    Args:
        checkpoint_dir: the folder, which need not exist yet.
        min_interval_secs: the least number of seconds between two checkpoints.
        timeout: the number of seconds to wait for the next checkpoint; None waits forever.
        timeout_fn: called after each wait; the iteration ends if it returns a true value. If it is None, the iteration
            ends when a wait times out.
    """
    latest = None
    while True:
        found = _later_checkpoint(checkpoint_dir, latest, timeout)
        if found is not None:
            due = time.monotonic() + min_interval_secs
            latest = found
            yield found
            time.sleep(max(0.0, due - time.monotonic()))
        elif timeout_fn is None:
            return
        if timeout_fn is not None and timeout_fn():
            return


def _later_checkpoint(folder: Any, known: str | None, timeout: float | None) -> str | None:
    """Wait until a folder's latest checkpoint is not ``known``; return its prefix, or None after ``timeout``."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        found = files.latest(folder)
        if found is not None and found != known:
            return found
        if deadline is not None and time.monotonic() + _POLL > deadline:
            return None
        time.sleep(_POLL)


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Return the key and the shape of each value in a checkpoint, or in a folder's latest checkpoint.

    Raises:
        NotFoundError: there is no checkpoint.
    """
    return [(key, shape) for key, (_, shape) in sorted(files.described(_prefix(ckpt_dir_or_file)).items())]


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """Return a value from a checkpoint, or from a folder's latest checkpoint, as a NumPy array.

    Raises:
        NotFoundError: there is no such key, or no checkpoint.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Return a reader of a checkpoint, or of a folder's latest checkpoint.

    Raises:
        NotFoundError: there is no checkpoint.
    """
    return CheckpointReader(_prefix(ckpt_dir_or_file))


def _prefix(path: Any) -> str:
    return files.latest(path) or os.fspath(path)


__getattr__ = saying(__name__)
