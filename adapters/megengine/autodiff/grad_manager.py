"""Gradients with respect to attached tensors (source: MegEngine 1.13.0, ``megengine.autodiff.grad_manager``)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeAlias

import torch
from torch.utils.weak import TensorWeakRef

from collshim.arrays import Array
from collshim.calls.call import name_of
from collshim.errors import ArgumentError, ArgumentTypeError, also
from collshim.megengine._recording import recording
from collshim.megengine.autodiff._gradients import accumulate, differentiate, leaves_of, paired
from collshim.megengine.core.tensor.values import Valued
from collshim.megengine.tensor import wrapped

__all__ = ["GradManager", "GradManagerGroup", "get_backwarding_grad_manager"]

Callback: TypeAlias = Callable[[Any, Any], Any]


def get_backwarding_grad_manager() -> GradManager | None:
    """Return the manager whose backward pass runs on this rank, for use in its callbacks; None if none runs."""
    manager: GradManager | None = recording.backwarding
    return manager


def join_backward(output: torch.Tensor) -> None:
    """Make every manager's backward pass on this rank go through ``output``, even if no loss depends on it."""
    for manager in recording.managers:
        manager._joins.append(output)


def go_on_to(output: torch.Tensor) -> None:
    """Make every manager's backward pass continue through ``output``, even if none of its inputs is attached here."""
    if output.requires_grad and recording.managers:
        leaves = leaves_of(output)
        for manager in recording.managers:
            manager._foreign.extend(leaves)


class _Attached:
    """An attached tensor, which is not kept alive, and the callbacks for its gradient.

    Attributes:
        snapshot: the value with respect to which the manager differentiates while it records.
    """

    def __init__(self, tensor: Any) -> None:
        self.tensor = weakref.ref(tensor) if isinstance(tensor, Valued) else TensorWeakRef(tensor)
        self.callbacks: list[Callback] = []
        self.snapshot: torch.Tensor | None = None

    def borrow(self) -> bool:
        """Make the tensor's value require a gradient; return whether it did not require one before."""
        tensor = self.tensor()
        value = tensor._value if isinstance(tensor, Valued) else tensor
        if value is None:
            return False
        is_new = not value.requires_grad
        if is_new and isinstance(tensor, Valued):
            value = tensor._value = value.detach()  # a separate tensor, because another tensor may hold the old value
        self.snapshot = value.requires_grad_(True) if is_new else value
        return is_new

    def hand_over(self) -> None:
        """Undo ``borrow``, unless the tensor has a different value by now."""
        tensor = self.tensor()
        if isinstance(tensor, Valued):
            if tensor._value is self.snapshot:
                tensor._value = tensor._value.detach()
        elif tensor is not None:
            tensor.requires_grad_(False)
        self.snapshot = None


class GradManager:
    """Computes gradients with respect to the tensors attached to it, and adds them to their ``grad``.

    MegEngine's and torch's tensors can be attached; they need not require gradients, but do so while the manager
    records. Everything computed from them between ``record`` and ``backward``, by ``functional`` or by torch, is
    differentiated. The computations in a manager's backward pass are recorded by managers that started to record before
    it.

    >>> manager = GradManager().attach([weight])  # doctest: +SKIP
    >>> with manager:  # doctest: +SKIP
    ...     loss = (weight * inp).sum()
    ...     manager.backward(loss)
    >>> weight.grad  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self._attached: dict[int, _Attached] = {}
        self._borrowed: list[_Attached] = []
        self._joins: list[torch.Tensor] = []
        self._foreign: list[torch.Tensor] = []
        self._after_backward: list[Callable[[], Any]] = []
        self._level = 0
        self._recording = False

    def attached_tensors(self) -> list[Any]:
        """Return the attached tensors in the order of attachment; the manager does not keep them alive."""
        return [tensor for tensor in (each.tensor() for each in self._attached.values()) if tensor is not None]

    def attach(self, tensors: Any, callbacks: Callback | Iterable[Callback] | None = None) -> GradManager:
        """Attach tensors, and call each callback with ``(tensor, grad)`` in every backward pass.

        Args:
            tensors: one or several tensors, with a floating-point or complex dtype.
            callbacks: one or several functions, called in order. Each returns the new gradient, or a future of it (as
                ``make_allreduce_cb`` does); if it returns None, the tensor's ``grad`` does not change. Attaching a
                tensor again adds callbacks to it.

        Raises:
            AssertionError: an object is not a tensor, or is a tensor of integers or booleans.
        """
        new_callbacks = [callbacks] if callable(callbacks) else list(callbacks or [])
        for tensor in [tensors] if isinstance(tensors, torch.Tensor | Valued) else list(tensors):
            _require_differentiable(tensor)
            found = self._attached.get(id(tensor))
            if found is None or found.tensor() is not tensor:
                self._forget_dead()
                found = self._attached[id(tensor)] = _Attached(tensor)
                if self._recording:
                    self._borrow(found)
            found.callbacks.extend(new_callbacks)
        return self

    def _register_after_backward_callback(self, callback: Callable[[], Any]) -> GradManager:
        """Register a function that is called in every backward pass, after the callbacks of the tensors."""
        self._after_backward.append(callback)
        return self

    def record(self) -> None:
        """Start to record; raise RuntimeError if the manager records already."""
        self._record(1 + max((manager._level for manager in recording.managers), default=0))

    def _record(self, level: int) -> None:
        if self._recording:
            raise also(ArgumentError, RuntimeError)("already recording")
        self._recording, self._level = True, level
        recording.managers.append(self)
        for attached in self._attached.values():
            self._borrow(attached)

    def backward(self, y: Array | Sequence[Array] | None = None, dy: Array | Sequence[Array] | None = None) -> None:
        """Differentiate, add the gradients to the ``grad`` of the attached tensors, and stop recording.

        Every rank whose tensors were inputs of a collective must call this: with a value computed from the output, or
        without an argument if the rank has no output (``reduce_sum`` and ``gather`` except on the root,
        ``remote_send``).

        Args:
            y: one or several values to differentiate; values that do not depend on an attached tensor are ignored.
            dy: the gradient of each value, with the value's shape; None for ones.

        Raises:
            RuntimeError: the manager does not record, or the numbers of ``y`` and ``dy`` differ.
        """
        if not self._recording:
            raise also(ArgumentError, RuntimeError)(
                "no computation history: call record(), or enter the manager, first"
            )
        earlier, recording.backwarding = recording.backwarding, self
        try:
            is_seen = any(manager._level < self._level for manager in recording.managers)
            with torch.set_grad_enabled(is_seen):
                grads = self._gradients(*paired(y, dy), is_seen)
                updates = [(tensor, _called_back(attached, tensor, grad)) for attached, tensor, grad in grads]
                for callback in self._after_backward:
                    callback()
                for tensor, grad in updates:
                    accumulate(tensor, grad, is_seen)
        finally:
            recording.backwarding = earlier
            self.release()

    def release(self) -> None:
        """Stop recording and discard the recorded graph."""
        if self._recording:
            self._recording = False
            recording.managers.remove(self)
        for attached in self._borrowed:
            self._hand_over(attached)
        self._borrowed, self._joins, self._foreign = [], [], []

    def __enter__(self) -> GradManager:
        self.record()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def __or__(self, other: object) -> GradManagerGroup:
        return GradManagerGroup([self]) | other

    def _borrow(self, attached: _Attached) -> None:
        if attached.borrow():
            self._borrowed.append(attached)

    def _hand_over(self, attached: _Attached) -> None:
        """Undo ``borrow``, unless another manager of this rank still records with the tensor."""
        tensor = attached.tensor()
        for manager in recording.managers:
            if any(other is tensor for other in manager.attached_tensors()):
                manager._borrowed.append(attached)
                return
        attached.hand_over()

    def _forget_dead(self) -> None:
        for key in [key for key, attached in self._attached.items() if attached.tensor() is None]:
            del self._attached[key]

    def _gradients(
        self, ys: list[torch.Tensor], dys: list[torch.Tensor], is_seen: bool
    ) -> list[tuple[_Attached, Any, Any]]:
        """Return the live attached tensors that have a gradient, with the gradient as the same kind of tensor."""
        found = [(each, each.tensor(), each.snapshot) for each in self._attached.values()]
        live = [(each, tensor, value) for each, tensor, value in found if tensor is not None and value is not None]
        pairs = [(y, dy) for y, dy in zip(ys, dys, strict=True) if y.requires_grad]
        pairs += [(join, torch.zeros_like(join)) for join in self._joins]
        keeps = is_seen or len(recording.managers) > 1
        grads = differentiate(pairs, [value for _, _, value in live], self._foreign, keeps, is_seen)
        return [
            (each, tensor, wrapped(grad, tensor._device) if isinstance(tensor, Valued) else grad)
            for (each, tensor, _), grad in zip(live, grads, strict=True)
            if grad is not None
        ]


class GradManagerGroup:
    """Managers joined by ``|``, which record at the same time; none records the computations in another's backward."""

    def __init__(self, managers: Iterable[GradManager]) -> None:
        self._managers = list(managers)

    def __or__(self, other: object) -> GradManagerGroup:
        if isinstance(other, GradManager):
            return GradManagerGroup([*self._managers, other])
        if isinstance(other, GradManagerGroup):
            return GradManagerGroup([*self._managers, *other._managers])
        return NotImplemented

    def __ror__(self, other: object) -> GradManagerGroup:
        return GradManagerGroup([]) | other | self

    def __enter__(self) -> GradManagerGroup:
        level = 1 + max((manager._level for manager in recording.managers), default=0)
        for manager in self._managers:
            manager._record(level)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for manager in reversed(self._managers):
            manager.release()


def _called_back(attached: _Attached, tensor: Any, grad: Any) -> Any:
    for callback in attached.callbacks:
        grad = callback(tensor, grad)
    return grad


def _require_differentiable(tensor: Any) -> None:
    if not isinstance(tensor, torch.Tensor | Valued):
        raise also(ArgumentTypeError, AssertionError)(
            f"Object to be attached should be Tensor: it is {type(tensor).__module__}.{type(tensor).__qualname__}"
        )
    value = tensor._value if isinstance(tensor, Valued) else tensor
    if not (value.is_floating_point() or value.is_complex()):
        raise also(ArgumentTypeError, AssertionError)(
            "Only tensors of floating point dtype can be attached to get gradients, "
            f"get tensor dtype: {name_of(value.dtype)} and shape: {tuple(value.shape)}"
        )
