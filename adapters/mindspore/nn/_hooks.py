"""The hooks of a Cell: functions that receive, and may change, its inputs, outputs and gradients (MindSpore 2.10.0)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.hooks import BackwardHook

from collshim.adapting.refusing import refuse
from collshim.mindspore.tensor import settle, wrap

_NUMBERS = itertools.count()


class HookHandle:
    """The handle that registering a hook returns; ``remove`` removes the hook."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self.handle_id = hooks, next(_NUMBERS)
        hooks[self.handle_id] = hook

    def remove(self) -> None:
        """Remove the hook."""
        self._hooks.pop(self.handle_id, None)


class Hooks:
    """A Cell's hooks of each kind, in the order of their calls."""

    def __init__(self) -> None:
        self.before = dict[int, Callable[..., Any]]()
        self.after = dict[int, Callable[..., Any]]()
        self.backward = dict[int, Callable[..., Any]]()
        self.before_backward = dict[int, Callable[..., Any]]()

    def call(self, cell: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the hooks before the function, the function, and the hooks after it; return the result."""
        for hook in list(self.before.values()):
            changed = hook(cell, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        watching = _watching(cell, self) if self.backward or self.before_backward else None
        if watching is not None:
            for value in args:
                settle(value)
            args = tuple(map(wrap, watching.setup_input_hook(args)))
        result = function(*args, **kwargs)
        for hook in list(self.after.values()):
            changed = hook(cell, args, result)
            result = result if changed is None else changed
        return result if watching is None else wrap(watching.setup_output_hook(result))


def _watching(cell: Any, hooks: Hooks) -> Any:
    before = [_wrapped_before(hook) for hook in hooks.before_backward.values()]
    return BackwardHook(cell, [_wrapped(hook) for hook in hooks.backward.values()], before)


def _wrapped_before(hook: Callable[..., Any]) -> Callable[..., Any]:
    def call(cell: Any, grad_output: Any) -> Any:
        with torch.no_grad():
            changed = hook(cell, wrap(tuple(grad_output)))
        return changed if changed is None or isinstance(changed, tuple) else (changed,)

    return call


def _wrapped(hook: Callable[..., Any]) -> Callable[..., Any]:
    def call(cell: Any, grad_input: Any, grad_output: Any) -> Any:
        with torch.no_grad():
            changed = hook(cell, wrap(tuple(grad_input)), wrap(tuple(grad_output)))
        return changed if changed is None or isinstance(changed, tuple) else (changed,)

    return call


class Hooked:
    """The methods of a Cell that register hooks. Each raises TypeError if the hook cannot be called."""

    def register_forward_pre_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook_fn(cell, inputs)`` before ``construct``; a result other than None is the new inputs."""
        return HookHandle(self._hooks.before, _callable(hook_fn))

    def register_forward_hook(
        self,
        hook_fn: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Call ``hook_fn(cell, inputs, output)`` after ``construct``; a result other than None is the new output."""
        return HookHandle(self._hooks.after, _callable(hook_fn))

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call ``hook_fn(cell, grad_input, grad_output)``; a result other than None is the inputs' new gradients."""
        return HookHandle(self._hooks.backward, _callable(hook_fn))

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call ``hook_fn(cell, grad_output)`` before the backward; a result other than None is the new gradient."""
        return HookHandle(self._hooks.before_backward, _callable(hook_fn))

    @property
    def _hooks(self) -> Hooks:
        hooks: Hooks = vars(self).setdefault("_hooks_", Hooks())
        return hooks


def _callable(hook: Any) -> Callable[..., Any]:
    if not callable(hook):
        refuse(TypeError, f"Expected a callable hook function, but got {type(hook).__name__}.")
    found: Callable[..., Any] = hook
    return found
