"""``oneflow.optim.lr_scheduler``: schedules of the learning rate, each a function of the base rate and the step.

Conventions of OneFlow 0.9.0: a schedule sets the rate of step 0 when it is created, and each ``step()`` sets the rate
of the next step, computed from the base rate and not from the previous rate. ``last_step`` is the number of the step.
Names that are not defined here are torch's.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from torch.optim import Optimizer, lr_scheduler

from collshim.adapting import fall_through
from collshim.errors import ArgumentTypeError, ArgumentValueError, also

Rate: TypeAlias = Callable[[float, int], float]


class LRScheduler:
    """The base class of schedules; a derived class defines ``get_lr(base_lr, step)``.

    Raises:
        TypeError: ``optimizer`` is not an optimizer.
        KeyError: ``last_step`` is not -1, and a parameter group has no ``initial_lr``.
    """

    def __init__(self, optimizer: Optimizer, last_step: int = -1, verbose: bool = False) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"optimizer is {type(optimizer).__name__}, should be an Optimizer object")
        self.optimizer = optimizer
        self.last_step = last_step
        self.verbose = verbose
        for place, group in enumerate(optimizer.param_groups):
            if last_step == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise also(ArgumentValueError, KeyError)(
                    f"param 'initial_lr' is not specified in param_groups[{place}]"
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self._last_lr: list[float] = []
        self.step()

    def get_lr(self, base_lr: float, step: int) -> float:
        """Return the rate at ``step`` of a group whose base rate is ``base_lr``."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """Return the current rate of each parameter group."""
        return self._last_lr

    def step(self) -> None:
        """Advance to the next step, and set its rates."""
        self.last_step += 1
        self.update_lrs(self._rates(self.last_step))

    def _rates(self, step: int) -> list[float]:
        return [self.get_lr(base, step) for base in self.base_lrs]

    def update_lrs(self, lrs: Sequence[float]) -> None:
        """Set the rate of each parameter group."""
        self._last_lr = list(lrs)
        for place, (group, lr) in enumerate(zip(self.optimizer.param_groups, lrs, strict=True)):
            group["lr"] = lr
            if self.verbose:
                print(f"{type(self).__name__}: step {self.last_step}, param_groups[{place}] at rate {lr:.5f}")

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule's state, without its optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name != "optimizer" and not callable(value)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from another schedule's ``state_dict``."""
        vars(self).update(state_dict)


_LRScheduler = LRScheduler


def _require(holds: bool, exception: type[Exception], text: str) -> None:
    if not holds:
        raise also(ArgumentValueError, exception)(text)


class _Formula(LRScheduler):
    """A schedule that is defined by one formula."""

    def __init__(self, optimizer: Optimizer, rate: Rate, last_step: int, verbose: bool) -> None:
        self._rate = rate
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        """Return the rate at ``step`` of a group whose base rate is ``base_lr``."""
        return self._rate(base_lr, step)


class CosineDecayLR(_Formula):
    """Decays along half a cosine to ``alpha`` times the base rate at ``decay_steps``, and then stays constant."""

    def __init__(
        self, optimizer: Optimizer, decay_steps: int, alpha: float = 0.0, last_step: int = -1, verbose: bool = False
    ) -> None:
        text = f"decay_steps is {decay_steps}, must greater than zero"
        _require(decay_steps > 0, AssertionError, text)

        def rate(base: float, step: int) -> float:
            cosine = 0.5 * (1 + math.cos(math.pi * step / decay_steps)) if step < decay_steps else 0.0
            return base * ((1 - alpha) * cosine + alpha)

        super().__init__(optimizer, rate, last_step, verbose)


class CosineAnnealingLR(_Formula):
    """Follows a cosine between the base rate and ``eta_min`` with half period ``T_max``."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_step: int = -1, verbose: bool = False
    ) -> None:
        def rate(base: float, step: int) -> float:
            return eta_min + (base - eta_min) * (0.5 * (1 + math.cos(math.pi * step / T_max)))

        super().__init__(optimizer, rate, last_step, verbose)


class ConstantLR(_Formula):
    """``factor`` times the base rate for ``total_iters`` steps, then the base rate."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        _require(0 <= factor <= 1, ValueError, f"factor is {factor}, should be between 0 and 1")
        super().__init__(
            optimizer, lambda base, step: base * factor if step < total_iters else base, last_step, verbose
        )


class LinearLR(_Formula):
    """Goes from ``start_factor`` to ``end_factor`` times the base rate in ``total_iters`` equal steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        for name, factor in (("start_factor", start_factor), ("end_factor", end_factor)):
            _require(0 <= factor <= 1, ValueError, f"{name} is {factor}, should be between 0 and 1")

        def rate(base: float, step: int) -> float:
            way = step / total_iters if step < total_iters else None
            return base * (end_factor if way is None else start_factor + (end_factor - start_factor) * way)

        super().__init__(optimizer, rate, last_step, verbose)


class StepLR(_Formula):
    """Multiplies the rate by ``gamma`` after every ``step_size`` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_step: int = -1, verbose: bool = False
    ) -> None:
        _require(step_size > 0, AssertionError, f"step_size is {step_size}, must greater than zero")
        _require(gamma > 0, AssertionError, f"gamma is {gamma}, must greater than zero")
        super().__init__(optimizer, lambda base, step: base * gamma ** (step // step_size), last_step, verbose)


class MultiStepLR(_Formula):
    """Multiplies the rate by ``gamma`` at each of the ``milestones``."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        text = f"milestones are {milestones}, values must be increasing"
        _require(list(milestones) == sorted(set(milestones)), AssertionError, text)
        super().__init__(
            optimizer, lambda base, step: base * gamma ** bisect.bisect_right(milestones, step), last_step, verbose
        )


class ExponentialLR(_Formula):
    """Multiplies the rate by ``gamma`` after every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_step: int = -1, verbose: bool = False) -> None:
        _require(gamma > 0, ValueError, f"gamma is {gamma}, must be greater than zero")
        super().__init__(optimizer, lambda base, step: base * gamma**step, last_step, verbose)


class PolynomialLR(_Formula):
    """Decays polynomially to ``end_learning_rate`` in ``decay_batch`` steps, and then stays constant.

    With ``cycle``, the decay is stretched instead to end at the next multiple of ``decay_batch``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        decay_batch: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        _require(decay_batch > 0, AssertionError, f"decay_batch is {decay_batch}, must greater than zero")

        def rate(base: float, step: int) -> float:
            length = decay_batch * math.ceil(max(step, 1) / decay_batch) if cycle else decay_batch
            at = max(step, 1) if cycle else min(step, decay_batch)
            return float((base - end_learning_rate) * (1 - at / length) ** power + end_learning_rate)

        super().__init__(optimizer, rate, last_step, verbose)


class LambdaLR(LRScheduler):
    """The base rate times a function of the step; ``lr_lambda`` is one function, or a list with one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_step: int = -1, verbose: bool = False) -> None:
        groups = len(optimizer.param_groups)
        self._functions = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        text = f"there are {len(self._functions)} functions, should be {groups}, one for each group"
        _require(len(self._functions) == groups, AssertionError, text)
        super().__init__(optimizer, last_step, verbose)

    def _rates(self, step: int) -> list[float]:
        return [base * function(step) for base, function in zip(self.base_lrs, self._functions, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule's state, without its optimizer and functions."""
        return {name: value for name, value in super().state_dict().items() if name != "_functions"}


class SequentialLR(LRScheduler):
    """Runs schedules one after another, switching at each of the ``milestones``.

    With ``interval_rescaling`` a schedule counts its steps from its milestone; otherwise from step 0.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        interval_rescaling: Sequence[bool] | bool = False,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        text = f"there are {len(schedulers)} schedulers and {len(milestones)} milestones, should be one more scheduler"
        _require(0 < len(schedulers) == len(milestones) + 1, ValueError, text)
        others = [place for place, schedule in enumerate(schedulers) if schedule.optimizer is not optimizer]
        _require(not others, ValueError, f"schedulers {others} have another optimizer, should have this one")
        self.schedulers = list(schedulers)
        self.milestones = list(milestones)
        several = isinstance(interval_rescaling, list | tuple)
        self.interval_rescaling = list(interval_rescaling) if several else [interval_rescaling] * len(milestones)  # type: ignore[arg-type]
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        """Return the rate of the schedule that is active at ``step``."""
        place = bisect.bisect_right(self.milestones, step)
        rescaled = place > 0 and self.interval_rescaling[place - 1]
        return self.schedulers[place].get_lr(base_lr, step - self.milestones[place - 1] if rescaled else step)

    def state_dict(self) -> dict[str, Any]:
        """Return the schedules' states, without their optimizer."""
        return {**super().state_dict(), "schedulers": [schedule.state_dict() for schedule in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from another schedule's ``state_dict``."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "schedulers"})
        for schedule, state in zip(self.schedulers, state_dict["schedulers"], strict=True):
            schedule.load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Chains schedules: the base rate of each is the rate of the previous one."""

    def __init__(self, schedulers: Sequence[LRScheduler]) -> None:
        self.schedulers = list(schedulers)
        super().__init__(self.schedulers[0].optimizer)

    def get_lr(self, base_lr: float, step: int) -> float:
        """Return the rate of the last schedule."""
        for schedule in self.schedulers:
            base_lr = schedule.get_lr(base_lr, step)
        return base_lr


def _share(schedule: LRScheduler, step: int) -> float:
    """Return a schedule's rate at a step, divided by the base rate; all groups must have the same base rate."""
    base = schedule.base_lrs[0]
    text = f"base rates are {schedule.base_lrs}, should be equal: groups have different warmup configs"
    _require(bool(np.isclose(schedule.base_lrs, base).all()), ValueError, text)
    return schedule.get_lr(base, step) / base


class WarmupLR(SequentialLR):
    """Starts at ``warmup_factor`` times the base rate for ``warmup_iters`` steps; then a schedule, or the base rate.

    A "linear" warmup rises to the schedule's rate at that step; a "constant" one stays. With ``warmup_prefix`` it rises
    to the base rate instead, and the schedule then starts from its step 0.
    """

    def __init__(
        self,
        scheduler_or_optimizer: LRScheduler | Optimizer,
        warmup_factor: float = 1.0 / 3,
        warmup_iters: int = 5,
        warmup_method: str = "linear",
        warmup_prefix: bool = False,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        after = scheduler_or_optimizer if isinstance(scheduler_or_optimizer, LRScheduler) else None
        optimizer: Any = scheduler_or_optimizer if after is None else after.optimizer
        text = f"'scheduler_or_optimizer' is {type(optimizer)}, must be a LRScheduler or an Optimizer"
        _require(isinstance(optimizer, Optimizer), ValueError, text)
        text = f"'warmup_method' is {warmup_method!r}, must be 'linear' or 'constant'"
        _require(warmup_method in ("linear", "constant"), ValueError, text)
        text = "warmup_iters is 0, should be above 0 if there is no schedule"
        _require(after is not None or warmup_iters > 0, ValueError, text)
        then = [] if after is None else [after]
        if warmup_iters <= 0:
            super().__init__(optimizer, then, [], last_step=last_step, verbose=verbose)
            return
        end = 1.0 if after is None or warmup_prefix else _share(after, warmup_iters)
        warmup = (
            LinearLR(optimizer, warmup_factor, end, warmup_iters, last_step)
            if warmup_method == "linear"
            else ConstantLR(optimizer, warmup_factor, warmup_iters, last_step)
        )
        starts = [warmup_iters] * len(then)
        super().__init__(optimizer, [warmup, *then], starts, [warmup_prefix] * len(then), last_step, verbose)


WarmUpLR = WarmupLR

__getattr__ = fall_through.names(__name__, [lr_scheduler])
