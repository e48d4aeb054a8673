"""``tf.summary.experimental``: the default step of summaries. Source: TensorFlow 2.21."""

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
    """Set the default step, a number or a variable, of this thread's calls from now on."""
    STEP.set(step)


__getattr__ = saying(__name__, "torch.utils.tensorboard writes the rest")
