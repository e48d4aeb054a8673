"""``tf.config.threading``: the number of threads. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

import torch

from collshim.adapting.absent import saying

__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]

_CHOSEN = {"inter": 0, "intra": 0}


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Let torch use this many threads for one operation; for 0, leave the choice to torch."""
    if num_threads > 0:
        torch.set_num_threads(num_threads)
    _CHOSEN["intra"] = num_threads


def get_intra_op_parallelism_threads() -> int:
    """Return the number that was set; 0 if there is none."""
    return _CHOSEN["intra"]


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Store the number, which has no effect: operations run one after another."""
    _CHOSEN["inter"] = num_threads


def get_inter_op_parallelism_threads() -> int:
    """Return the number that was set; 0 if there is none."""
    return _CHOSEN["inter"]


__getattr__ = saying(__name__)
