"""Functions of ``mindspore.nn`` that return a list of learning rates, one per step (source: MindSpore 2.10.0)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_float, check_int, check_type

__all__ = [
    "cosine_decay_lr",
    "exponential_decay_lr",
    "inverse_decay_lr",
    "natural_exp_decay_lr",
    "piecewise_constant_lr",
    "polynomial_decay_lr",
    "warmup_lr",
]


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """Return ``learning_rates[i]`` for each step before ``milestone[i]``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the lengths differ, or the milestones are not increasing.
    """
    of = "piecewise_constant_lr"
    check_type(milestone, "milestone", of, tuple, list)
    check_type(learning_rates, "learning_rates", of, tuple, list)
    if len(milestone) != len(learning_rates):
        text = f"'milestone' must be as long as 'learning_rates', but got {len(milestone)} and {len(learning_rates)}"
        refuse(ValueError, f"For 'piecewise_constant_lr', {text}")
    rates: list[float] = []
    for index, (step, rate) in enumerate(zip(milestone, learning_rates, strict=True)):
        check_int(step, f"milestone[{index}]", of, least=1)
        check_type(rate, f"learning_rates[{index}]", of, float)
        if step < len(rates):
            text = f"milestone[{index}] must be greater than the one before, but got {list(milestone)}"
            refuse(ValueError, f"For 'piecewise_constant_lr', {text}")
        rates += [rate] * (step - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return ``learning_rate * decay_rate ** (epoch / decay_epoch)`` for each step.

    ``is_stair`` rounds the exponent down.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is not positive.
    """
    of = "exponential_decay_lr"
    _check_rates(of, learning_rate, decay_rate, is_stair)
    epochs = _epochs(of, total_step, step_per_epoch, decay_epoch)
    periods = (math.floor(epoch / decay_epoch) if is_stair else epoch / decay_epoch for epoch in epochs)
    return [learning_rate * decay_rate**period for period in periods]


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return ``learning_rate * exp(-decay_rate * epoch)`` for each step.

    ``is_stair`` rounds the epoch down to a multiple of ``decay_epoch``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is not positive.
    """
    of = "natural_exp_decay_lr"
    _check_rates(of, learning_rate, decay_rate, is_stair)
    epochs = _epochs(of, total_step, step_per_epoch, decay_epoch)
    rounded = (epoch // decay_epoch * decay_epoch if is_stair else epoch for epoch in epochs)
    return [learning_rate * math.exp(-decay_rate * epoch) for epoch in rounded]


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return ``learning_rate / (1 + decay_rate * epoch / decay_epoch)`` for each step.

    ``is_stair`` rounds the quotient of the epochs down.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is not positive.
    """
    of = "inverse_decay_lr"
    _check_rates(of, learning_rate, decay_rate, is_stair)
    epochs = _epochs(of, total_step, step_per_epoch, decay_epoch)
    periods = (math.floor(epoch / decay_epoch) if is_stair else epoch / decay_epoch for epoch in epochs)
    return [learning_rate / (1 + decay_rate * period) for period in periods]


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """Return a half cosine from ``max_lr`` to ``min_lr`` over ``decay_epoch`` epochs, for each step.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or ``max_lr`` is not above ``min_lr``.
    """
    of = "cosine_decay_lr"
    check_float(min_lr, "min_lr", of, 0.0)
    check_float(max_lr, "max_lr", of, 0.0, ends="(]")
    if min_lr >= max_lr:
        text = f"the 'max_lr' must be greater than the 'min_lr', but got {max_lr} and {min_lr}"
        refuse(ValueError, f"For 'cosine_decay_lr', {text}")
    epochs = (min(epoch, decay_epoch) for epoch in _epochs(of, total_step, step_per_epoch, decay_epoch))
    half = 0.5 * (max_lr - min_lr)
    return [min_lr + half * (1 + math.cos(math.pi * epoch / decay_epoch)) for epoch in epochs]


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """Return the rate of ``PolynomialDecayLR`` for each step, counted in epochs.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
    """
    of = "polynomial_decay_lr"
    check_float(learning_rate, "learning_rate", of, 0.0, ends="(]")
    check_float(end_learning_rate, "end_learning_rate", of, 0.0)
    check_float(power, "power", of, 0.0, ends="(]")
    check_bool(update_decay_epoch, "update_decay_epoch", of)
    rates = []
    for epoch in _epochs(of, total_step, step_per_epoch, decay_epoch):
        longest = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        part = min(epoch, longest) / longest
        rates.append((learning_rate - end_learning_rate) * (1 - part) ** power + end_learning_rate)
    return rates


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """Return rates that rise to ``learning_rate`` over ``warmup_epoch`` epochs, for each step.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
    """
    check_float(learning_rate, "learning_rate", "warmup_lr", 0.0)
    epochs = _epochs("warmup_lr", total_step, step_per_epoch, warmup_epoch, "warmup_epoch")
    return [learning_rate * min(epoch, warmup_epoch) / warmup_epoch for epoch in epochs]


def _check_rates(of: str, learning_rate: float, decay_rate: float, is_stair: bool) -> None:
    check_float(learning_rate, "learning_rate", of, 0.0, ends="(]")
    check_float(decay_rate, "decay_rate", of, 0.0, ends="(]")
    check_bool(is_stair, "is_stair", of)


def _epochs(of: str, total_step: int, step_per_epoch: int, period: int, name: str = "decay_epoch") -> list[int]:
    """Return the epoch of each step."""
    check_int(total_step, "total_step", of, least=1)
    check_int(step_per_epoch, "step_per_epoch", of, least=1)
    check_int(period, name, of, least=1)
    return [step // step_per_epoch for step in range(total_step)]
