"""``tf.tpu.experimental``: there is no TPU to start."""

from __future__ import annotations

from typing import Any

from collshim.adapting.absent import saying

__all__ = ["initialize_tpu_system", "shutdown_tpu_system"]


def initialize_tpu_system(cluster_resolver: Any = None) -> None:
    """Return None (TensorFlow: the topology): there is no TPU here."""


def shutdown_tpu_system(cluster_resolver: Any = None) -> None:
    """Do nothing: there is no TPU here."""


__getattr__ = saying(__name__, "there are no TPUs here")
