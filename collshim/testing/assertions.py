"""Assertions that ranks make together, with messages that list the ranks that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

import collshim
from collshim.communicator import Communicator
from collshim.testing.group import default_group, has_default_group

_SHOWN = 5
"""The number of ranks that a message lists."""


def assert_equal_across_ranks(
    value: Any, *, comm: Communicator | None = None, rtol: float = 0.0, atol: float = 0.0, name: str = "the value"
) -> None:
    """Assert that all ranks have the same value; every rank of the group must call this.

    Every rank raises if any rank differs from the first.

    Examples:
        >>> def check():
        ...     assert_equal_across_ranks(torch.ones(2), name="the bias")
        >>> _ = collshim.launch(check, 2)

    Args:
        value: a tensor, an array, a number, or anything that can be compared and pickled, also in lists, tuples and
            dicts.
        comm: the group; None for all ranks.
        rtol, atol: how much floating-point numbers may differ, as in ``torch.allclose``; NaN equals NaN.
        name: the value's name in the message.

    Raises:
        AssertionError: on every rank, if some rank's value differs from that of rank 0.
    """
    group = collshim.current().communicator if comm is None else comm
    values = group.all_gather_object(_portable(value)).wait()
    differences = [(rank, _difference(values[0], other, rtol, atol)) for rank, other in enumerate(values)]
    texts = [f"rank {rank}: {text}" for rank, text in differences if text]
    if texts:
        more = f"\n  and {len(texts) - _SHOWN} more ranks" if len(texts) > _SHOWN else ""
        raise AssertionError(f"{name} differs from that of rank 0:\n  " + "\n  ".join(texts[:_SHOWN]) + more)


def assert_same_on_one_rank(
    function: Callable[..., Any],
    *args: Any,
    comm: Communicator | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    name: str = "the result",
) -> Any:
    """Assert that a function computes the same on these ranks as on one rank; every rank must call this.

    Examples:
        >>> def total():
        ...     return collshim.current().communicator.all_reduce(torch.ones(3), "avg").wait()
        >>> def check():
        ...     assert_same_on_one_rank(total)
        >>> _ = collshim.launch(check, 2)

    Args:
        function: is called with ``args`` on every rank of the group, and once more, on rank 0, in a world of one rank;
            it must obtain its world from ``collshim.current()`` or a stand-in, and not keep state between the calls.
        comm: the group; None for all ranks.
        rtol, atol: how much floating-point numbers may differ, as in ``torch.allclose``.
        name: the result's name in the message.

    Returns:
        The rank's own result.

    Raises:
        AssertionError: on every rank, if some rank's result differs from the result on one rank.
    """
    group = collshim.current().communicator if comm is None else comm
    own = function(*args)
    alone = collshim.launch(_alone(function), 1, args=args)[0] if group.rank == 0 else None
    expected = group.broadcast_object(_portable(alone), 0).wait()
    found = _difference(expected, _portable(own), rtol, atol)
    texts = [f"rank {rank}: {text}" for rank, text in enumerate(group.all_gather_object(found).wait()) if text]
    if texts:
        raise AssertionError(f"{name} differs from that on one rank:\n  " + "\n  ".join(texts[:_SHOWN]))
    return own


def _alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs with a default group of torch.distributed in its world, if this rank has one."""
    if not has_default_group():
        return function

    def with_group(*args: Any) -> Any:
        with default_group():
            return function(*args)

    return with_group


def _portable(value: Any) -> Any:
    """Detach tensors and copy them to the CPU."""
    return tree_map(lambda leaf: leaf.detach().cpu() if isinstance(leaf, Tensor) else leaf, value)


def _difference(expected: Any, value: Any, rtol: float, atol: float) -> str:
    """Describe how a value differs; return "" if it does not."""
    ours, form = tree_flatten(expected)
    theirs, other_form = tree_flatten(value)
    if form != other_form:
        return f"{_short(value)}, should be like {_short(expected)}"
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        text = _leaf_difference(one, other, rtol, atol)
        if text:
            return text if len(ours) == 1 else f"item {place} of {len(ours)}: {text}"
    return ""


def _leaf_difference(expected: Any, value: Any, rtol: float, atol: float) -> str:
    if type(expected) is not type(value):
        return f"{_short(value)}, a {type(value).__name__}, should be {_short(expected)}"
    if isinstance(expected, float):
        expected, value = torch.tensor(expected, dtype=torch.float64), torch.tensor(value, dtype=torch.float64)
    if hasattr(expected, "__array__") and not isinstance(expected, Tensor):
        expected, value = torch.as_tensor(expected), torch.as_tensor(value)
    if not isinstance(expected, Tensor):
        return "" if expected == value else f"{_short(value)}, should be {_short(expected)}"
    return _tensor_difference(expected, value, rtol, atol)


def _tensor_difference(expected: Tensor, value: Tensor, rtol: float, atol: float) -> str:
    if (expected.shape, expected.dtype) != (value.shape, value.dtype):
        return f"{_form(value)}, should be {_form(expected)}"
    is_real = expected.is_floating_point() or expected.is_complex()
    alike = torch.isclose(value, expected, rtol, atol, equal_nan=True) if is_real else value == expected
    if alike.all():
        return ""
    first = tuple((~alike).nonzero()[0].tolist())
    where = f" at [{', '.join(map(str, first))}]" if first else ""
    count = f"; {int((~alike).sum())} of {alike.numel()} elements differ" if alike.numel() > 1 else ""
    return f"{value[first].item()!r}{where}, should be {expected[first].item()!r}{count}{_factor(expected, value)}"


def _factor(expected: Tensor, value: Tensor) -> str:
    """Describe the factor by which all elements differ, if there is one: it reveals a sum instead of a mean."""
    if not expected.is_floating_point() or not (expected != 0).any():
        return ""
    ratios = (value / expected)[expected != 0]
    factor = ratios[0].item()
    is_one = torch.allclose(ratios, ratios[:1].expand_as(ratios), rtol=1e-4) and factor not in (0.0, 1.0)
    return f"; all are {factor:.6g} times as large" if is_one and torch.isfinite(ratios).all() else ""


def _form(tensor: Tensor) -> str:
    return f"shape {tuple(tensor.shape)} of {str(tensor.dtype).removeprefix('torch.')}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
