"""Calls in which the ranks' shapes differ by dimensions of length 1: a result has its own rank's shape.

Without ``out``, the result of a broadcast may have the root's.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.engine.worlds import TRANSPORTS, attempt, on_ranks, world

SHAPES = {"a number": ((), (1,)), "a row and a column": ((1, 4), (4, 1)), "inside": ((2, 1, 3), (2, 3))}
pytestmark = pytest.mark.processes


def results(own: torch.Tensor) -> dict[str, Any]:
    comm, over = world(), dict[str, Any]()
    for op in ("sum", "max"):
        over[op] = comm.all_reduce(own, op).wait()
    for name, root in (("first", 0), ("second", 1)):
        over[name] = comm.broadcast(own, root).wait().reshape(own.shape)
    over["reduced"] = comm.reduce(own, 1).wait()
    over["in place"] = own.clone()
    comm.all_reduce(over["in place"], out=over["in place"]).wait()
    over["received"] = own.clone()
    comm.broadcast(over["received"], 1, out=over["received"]).wait()
    return {
        name: None if value is None else (tuple(value.shape), value.flatten().tolist()) for name, value in over.items()
    }


def alike(shapes: tuple[tuple[int, ...], ...], length: int) -> dict[str, Any]:
    shape = tuple(length if count > 1 else 1 for count in shapes[world().rank])
    return results(torch.arange(float(torch.Size(shape).numel())).reshape(shape) + world().rank)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("length", [4, 1000], ids=["small", "large"])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_dimensions_of_length_1_do_not_count(shapes: Any, length: int, transport: str) -> None:
    first, second = on_ranks(alike, 2, transport, shapes, length)
    numbers = [float(number) for number in range(len(first["first"][1]))]
    more = [number + 1 for number in numbers]
    both = [2 * number + 1 for number in numbers]
    values = {"sum": both, "max": more, "first": numbers, "second": more, "in place": both, "received": more}
    for got in (first, second):
        shape = got["sum"][0]
        assert {name: got[name] for name in values} == {name: (shape, value) for name, value in values.items()}
    assert first["reduced"] is None
    assert second["reduced"] == (second["sum"][0], both)
    assert first["sum"][0] != second["sum"][0]


def gradient() -> tuple[tuple[int, ...], list[float]]:
    own = torch.ones(() if world().rank else (1,), requires_grad=True)
    (world().all_reduce(own).wait() * 3).sum().backward()
    assert own.grad is not None
    return tuple(own.grad.shape), own.grad.flatten().tolist()


@pytest.mark.parametrize("transport", TRANSPORTS[:3])
def test_gradient_has_the_shape_of_its_input(transport: str) -> None:
    assert on_ranks(gradient, 2, transport) == [((1,), [6.0]), ((), [6.0])]


def unlike() -> list[str]:
    own, column = torch.ones(2 + world().rank, 3 - world().rank), torch.ones(4, 1 + world().rank)
    calls = [lambda: world().all_reduce(own).wait(), lambda: world().broadcast(column, 0, out=column).wait()]
    return [attempt(call).text.partition("\n")[0] for call in calls]


@pytest.mark.parametrize("transport", TRANSPORTS[:3])
def test_other_differences_are_refused(transport: str) -> None:
    shape, sent = "ranks disagree on shape", "rank 0 sends rank 1 shape (4, 1), rank 1 expects (4, 2)"
    for reduced, broadcast in on_ranks(unlike, 2, transport):
        assert shape in reduced
        assert sent in broadcast or shape in broadcast
