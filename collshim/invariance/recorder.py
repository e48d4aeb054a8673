"""Records a step on one rank: the initial parameters, the gradients and, if requested, every operation."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

import collshim
from collshim import observers
from collshim.invariance import own_random
from collshim.invariance.calls import CallTrace
from collshim.invariance.outcome import Outcome
from collshim.invariance.parameters import Parameters
from collshim.invariance.records import FORWARD, RankRecord
from collshim.invariance.replacing import replaced
from collshim.invariance.tracing import Trace, program_lines
from collshim.transports import Transport

_active = threading.local()
"""The recorder of this thread's rank."""


class EnoughStepsError(BaseException):
    """Raised to end a script after the steps that are compared."""


class Recorder:
    """Records what a step does on this rank.

    Args:
        traces: whether to keep the results of all operations.
        keeps_dropout: whether dropout is left on.
        values: initial values for parameters, by number, that replace the program's own.
        steps: the number of the optimizer's steps after which a script ends; None for a function, which returns.
        to_end: whether to also keep the results of operations after the optimizer's first step.
    """

    def __init__(
        self,
        *,
        traces: bool = False,
        keeps_dropout: bool = False,
        values: dict[int, Tensor] | None = None,
        steps: int | None = None,
        to_end: bool = False,
    ) -> None:
        self.record = RankRecord()
        self.parameters = Parameters()
        self.trace = Trace(self.record, self.parameters, keeps=traces, keeps_dropout=keeps_dropout)
        self._values = dict(values or {})
        self._steps, self._to_end = steps, to_end
        self._stepped = dict[int, int]()
        self._losses_so_far = 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record inside the block."""
        with ExitStack() as stack:
            stack.enter_context(_hooked())
            stack.enter_context(replaced(torch.nn.utils, "clip_grad_norm_", _clip))
            stack.enter_context(replaced(torch, "manual_seed", _seed))
            stack.enter_context(replaced(torch.autograd, "_engine_run_backward", _run_backward))
            _active.recorder = self
            stack.callback(vars(_active).clear)
            if self.trace.keeps:
                own = collshim.current().communicator
                own.observe(CallTrace(self.trace, own._transport))
                observers.MAKERS.append(_observer)
                stack.callback(observers.MAKERS.remove, _observer)
            stack.enter_context(self.trace)
            yield

    def before_forward(self, module: nn.Module) -> None:
        """Record a module that is about to be called."""
        self.trace.forward_again()
        if self.trace.phase == FORWARD and not self.parameters.has(module):
            with torch.no_grad(), self.trace.paused():
                self.parameters.add_module(module)
                self.parameters.set_values(self._values)

    def before_step(self, optimizer: Any) -> None:
        """Record an optimizer that is about to step; end a script if it has made all its steps."""
        if self._stepped.get(id(optimizer), 0) == (self._steps or 1):
            self._end()
        with self.trace.paused():
            self.parameters.take_stepped(one for group in optimizer.param_groups for one in group["params"])

    def after_step(self, optimizer: Any) -> None:
        """Record an optimizer that has stepped; end a script if all optimizers have made all their steps."""
        self._stepped[id(optimizer)] = self._stepped.get(id(optimizer), 0) + 1
        self.record.steps = max(self._stepped.values())
        self._losses_so_far = len(self.trace.losses)
        if self.record.steps == self._steps and not self._has_unfinished_optimizers():
            self._end()

    def _has_unfinished_optimizers(self) -> bool:
        """Return whether any optimizer has steps left to make; a GAN, for example, has two optimizers."""
        others = [one for one in gc.get_objects() if isinstance(one, torch.optim.Optimizer)]
        return any(self._stepped.get(id(one), 0) < (self._steps or 1) for one in others)

    def _end(self) -> None:
        """End a script after enough steps; for a function, stop recording operations."""
        self.trace.keeps = self.trace.keeps and self._to_end
        if self._steps is not None:
            del self.trace.losses[self._losses_so_far :]
            raise EnoughStepsError

    def finish(self, returned: Any) -> RankRecord:
        """Return the record; ``returned`` is the result of the step."""
        record = self.record
        with self.trace.paused():
            outcome = Outcome(returned)
        if not record.backward and outcome.loss is not None and outcome.loss.requires_grad:
            outcome.loss.backward()
        with torch.no_grad(), self.trace.paused():
            if outcome.modules or outcome.gradients:
                self.parameters.select(outcome.modules)
            self.parameters.take_gradients()
            self.parameters.take_values()
        self.trace.finish()
        record.losses = outcome.losses or self.trace.losses
        record.parameters = self.parameters.records + outcome.gradients
        return record


_hooking, _users = threading.Lock(), list[Any]()


@contextmanager
def _hooked() -> Iterator[None]:
    """Let the recorders of all threads observe modules and optimizers inside the block.

    The threads share the hooks, because adding a hook while another thread iterates over them would fail.
    """
    with _hooking:
        if not _users:
            _users.append(register_module_forward_pre_hook(lambda module, args: _notify("before_forward", module)))
            _users.append(register_optimizer_step_pre_hook(lambda one, args, kwargs: _notify("before_step", one)))
            _users.append(register_optimizer_step_post_hook(lambda one, args, kwargs: _notify("after_step", one)))
        _users.append(None)
    try:
        yield
    finally:
        with _hooking:
            _users.pop()
            while _users and _users[-1] is not None:
                _users.pop().remove()


def _notify(what: str, subject: Any) -> None:
    recorder = getattr(_active, "recorder", None)
    if recorder is not None:
        getattr(recorder, what)(subject)


def _observer(transport: Transport) -> CallTrace | None:
    recorder = getattr(_active, "recorder", None)
    return None if recorder is None else CallTrace(recorder.trace, transport)


def _clip(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Clip gradients, and record their total norm."""
    total = original(*args, **kwargs)
    recorder = getattr(_active, "recorder", None)
    if recorder is not None:
        lines, _ = program_lines()
        whole = total.full_tensor() if hasattr(total, "full_tensor") else total
        recorder.record.clipped.append((lines, float(whole)))
    return total


def _seed(original: Any, seed: Any) -> Any:
    """Seed torch, and record the seed."""
    recorder = getattr(_active, "recorder", None)
    if recorder is not None:
        lines, _ = program_lines()
        recorder.record.seeds.append((lines, int(seed)))
    return own_random.seed(original, seed)


def _run_backward(original: Any, outputs: Any, gradients: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a backward pass that the rank's trace records."""
    recorder = getattr(_active, "recorder", None)
    if recorder is None:
        return original(outputs, gradients, *args, **kwargs)
    with recorder.trace.backward(outputs, gradients):
        return original(outputs, gradients, *args, **kwargs)
