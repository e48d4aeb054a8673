"""``tf.summary.experimental``: the step of summaries that pass no step. Source: TensorFlow 2.21."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from collshim.adapting.absent import saying

__all__ = ["get_step", "set_step"]

STEP: ContextVar[Any] = ContextVar("summary_step", default=None)


def get_step() -> Any:
    """Return the step of this thread, a number or a variable; None if there is none."""
    return STEP.get()


def set_step(step: Any) -> None:
    """Set the step, a number or a variable, that calls without a step use from now on in this thread."""
    STEP.set(step)


__getattr__ = saying(__name__, "torch.utils.tensorboard writes the rest")
