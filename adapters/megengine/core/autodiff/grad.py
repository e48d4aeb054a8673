"""``Grad``, a single backward pass without a manager, and ``Function`` (``megengine.core.autodiff.grad``)."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from collshim.megengine.autodiff._function import Function
from collshim.megengine.autodiff.grad_manager import GradManager

__all__ = ["Function", "Grad"]


class Grad:
    """Computes gradients once and passes them to callbacks; the tensors' ``grad`` does not change.

    >>> with Grad() as grad:  # doctest: +SKIP
    ...     grad.wrt(x, callback=print)
    ...     grad(x * x, ones)
    """

    def __init__(self, name: str | None = None) -> None:
        self._manager = GradManager()

    def wrt(self, *tensors: Any, callback: Callable[[Any], Any] | None = None) -> Grad:
        """Compute gradients for these tensors, and call ``callback`` with each."""

        def called(tensor: Any, grad: Any) -> None:
            if callback is not None:
                callback(grad)

        self._manager.attach(list(tensors), callbacks=called)
        return self

    def __call__(self, ys: Any, dys: Any) -> None:
        """Differentiate; every rank of a collective must call this, with empty lists if it has no output."""
        self._manager.backward(ys, dys)

    def __enter__(self) -> Grad:
        self._manager.record()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._manager.release()
