"""TensorFlow's functions about graphs: ``recompute_grad`` and ``gradients``.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import wraps
from typing import Any

from torch.utils.checkpoint import checkpoint

from collshim.errors import ArgumentError, also
from collshim.tensorflow.distribute import stack
from collshim.tensorflow.gradient_tape import UnconnectedGradients


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that no intermediate results are kept for the gradient: the function is called again for it.

    The second call uses the same tapes as the first, but the current values of variables.
    """

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        seen = contextvars.copy_context()

        def computed(*given: Any, **named: Any) -> Any:
            return seen.copy().run(f, *given, **named)

        return checkpoint(computed, *args, use_reentrant=False, **kwargs)

    return call


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
) -> Any:
    """Raise an error: there are no graphs to differentiate here.

    Raises:
        RuntimeError: always; outside a ``tf.function`` with TensorFlow's text.
    """
    if stack.is_in_function():
        raise also(ArgumentError, RuntimeError)(
            "tf.gradients differentiates a graph, and a tf.function has none here: compute ys in the block of a "
            "tf.GradientTape, and call its gradient"
        )
    raise also(ArgumentError, RuntimeError)(
        "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."
    )
