"""A call like an earlier one is not validated again; a call that is wrong, or differs, is met as the first one is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run


def _rank() -> int:
    return dist.get_rank()


def _own() -> torch.Tensor:
    return torch.full((2, 3), float(_rank()))


def _list(value: float = 0.0) -> list[torch.Tensor]:
    return [torch.full((2, 3), value) for _ in range(2)]


def _on_root(value: list[torch.Tensor]) -> list[torch.Tensor] | None:
    return value if _rank() == 0 else None


RIGHT: dict[str, Callable[[], Any]] = {
    "all_reduce": lambda: dist.all_reduce(_own()),
    "reduce": lambda: dist.reduce(_own(), 0),
    "broadcast": lambda: dist.broadcast(_own(), 0),
    "all_gather": lambda: dist.all_gather(_list(), _own()),
    "all_gather_single": lambda: dist.all_gather_single(torch.zeros(4, 3), _own()),
    "gather": lambda: dist.gather(_own(), _on_root(_list()), 0),
    "scatter": lambda: dist.scatter(_own(), _on_root(_list()), 0),
    "reduce_scatter": lambda: dist.reduce_scatter(_own(), _list()),
    "reduce_scatter_single": lambda: dist.reduce_scatter_single(_own(), torch.ones(4, 3)),
    "all_to_all": lambda: dist.all_to_all(_list(), _list()),
    "all_to_all_single": lambda: dist.all_to_all_single(torch.zeros(4, 3), torch.ones(4, 3)),
    "all_to_all_single, split": lambda: dist.all_to_all_single(torch.zeros(4, 3), torch.ones(4, 3), [2, 2], [2, 2]),
}

WRONG: dict[str, list[tuple[type[Exception], Callable[[], Any]]]] = {
    "all_reduce": [
        (TypeError, lambda: dist.all_reduce([_own()])),
        (TypeError, lambda: dist.all_reduce(_own(), "sum")),
    ],
    "reduce": [
        (ValueError, lambda: dist.reduce(_own())),
        (ValueError, lambda: dist.reduce(_own(), 0, group_dst=0)),
        (RuntimeError, lambda: dist.reduce(_own(), 2)),
    ],
    "broadcast": [(RuntimeError, lambda: dist.broadcast(_own(), 5)), (TypeError, lambda: dist.broadcast([_own()], 0))],
    "all_gather": [
        (TypeError, lambda: dist.all_gather(tuple(_list()), _own())),  # type: ignore[arg-type]
        (TypeError, lambda: dist.all_gather(torch.zeros(2, 2, 3), _own())),  # type: ignore[arg-type]
        (RuntimeError, lambda: dist.all_gather(_list()[:1], _own())),
        (ValueError, lambda: dist.all_gather([*_list()[:1], torch.zeros(2, 3, dtype=torch.int32)], _own())),
        (RuntimeError, lambda: dist.all_gather([torch.zeros(2, 3)] * 2, torch.ones(3, 2))),
    ],
    "all_gather_single": [
        (TypeError, lambda: dist.all_gather_single(_list(), _own())),
        (RuntimeError, lambda: dist.all_gather_single(torch.zeros(3, 4), _own())),
    ],
    "gather": [
        (ValueError, lambda: dist.gather(_own(), None if _rank() == 0 else _list(), 0)),
        (TypeError, lambda: dist.gather(_own(), tuple(_list()), 0)),  # type: ignore[arg-type]
    ],
    "scatter": [
        (ValueError, lambda: dist.scatter(_own(), None if _rank() == 0 else _list(), 0)),
        (TypeError, lambda: dist.scatter(_own(), tuple(_list()), 0)),  # type: ignore[arg-type]
    ],
    "reduce_scatter": [(TypeError, lambda: dist.reduce_scatter(_own(), torch.ones(2, 2, 3)))],  # type: ignore[arg-type]
    "reduce_scatter_single": [
        (TypeError, lambda: dist.reduce_scatter_single(_own(), _list())),
        (RuntimeError, lambda: dist.reduce_scatter_single(torch.zeros(3, 2), torch.ones(4, 3))),
    ],
    "all_to_all": [
        (TypeError, lambda: dist.all_to_all(tuple(_list()), _list())),  # type: ignore[arg-type]
        (RuntimeError, lambda: dist.all_to_all(_list()[:1], _list())),
    ],
    "all_to_all_single": [
        (TypeError, lambda: dist.all_to_all_single(_list(), _list())),
        (RuntimeError, lambda: dist.all_to_all_single(torch.zeros(3, 3), torch.ones(3, 3))),
    ],
    "all_to_all_single, split": [
        (RuntimeError, lambda: dist.all_to_all_single(torch.zeros(4, 3), torch.ones(4, 3), [2, 3], [2, 2])),
        (RuntimeError, lambda: dist.all_to_all_single(torch.zeros(4, 3), torch.ones(4, 3), [4], [2, 2])),
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_wrong_call_is_refused_after_right_ones(name: str, run: Run, refused: Refused) -> None:
    def calls() -> None:
        for _ in range(2):
            RIGHT[name]()
        for exception, call in WRONG[name]:
            refused(exception, call)
        RIGHT[name]()

    run(calls, 2)


def _twice(call: Callable[[], Any]) -> Callable[[], Any]:
    """The same calls once more; what the second ones gave."""
    return lambda: [call(), call()][1]


def test_a_repeated_call_gives_a_work_where_asked_whose_results_are_the_callers_own(run: Run) -> None:
    def calls() -> Any:
        tensor, parts, whole = torch.ones(2), [torch.zeros(2) for _ in range(2)], torch.zeros(4)
        works = [
            dist.all_reduce(tensor, async_op=True),
            dist.all_gather(parts, torch.ones(2), async_op=True),
            dist.all_gather_single(whole, torch.ones(2), async_op=True),
        ]
        results = [work.result() for work in works if work is not None]
        return (
            results[0][0] is tensor,
            results[1] is parts or results[1][0] is parts[0],
            len(results[2]),
            whole.tolist(),
        )

    assert run(_twice(calls), 2) == [(True, True, 2, [1.0] * 4)] * 2


def test_arrays_of_other_kinds_and_lists_of_them_are_repeated_too(run: Run) -> None:
    def calls() -> Any:
        array, parts = np.ones(2, dtype=np.float32), [np.zeros(2, dtype=np.float32) for _ in range(2)]
        dist.all_reduce(array)
        dist.all_gather(parts, array)
        return array.tolist(), [part.tolist() for part in parts]

    assert run(_twice(calls), 2) == [([2.0, 2.0], [[2.0, 2.0]] * 2)] * 2


def test_pieces_of_length_one_are_repeated(run: Run) -> None:
    def calls() -> Any:
        out, own = torch.zeros(2), torch.tensor([10.0 * _rank(), 10.0 * _rank() + 1])
        dist.all_to_all_single(out, own)
        single = torch.zeros(1)
        dist.reduce_scatter_single(single, own)
        return out.tolist(), single.tolist()

    assert run(_twice(calls), 2) == [([0.0, 10.0], [10.0]), ([1.0, 11.0], [12.0])]


def test_a_repeated_call_of_a_group_has_its_ranks(run: Run) -> None:
    def calls() -> Any:
        group = dist.new_group([2, 0], sort_ranks=False)
        if _rank() == 1:
            return None
        tensors = [torch.tensor([float(_rank())]) for _ in range(4)]
        for tensor, other in (tensors[:2], tensors[2:]):
            dist.broadcast(tensor, 2, group=group)
            dist.broadcast(other, group=group, group_src=1)
        return [tensor.item() for tensor in tensors]

    assert run(calls, 3) == [[2.0, 0.0] * 2, None, [2.0, 0.0] * 2]


def test_a_strided_tensor_is_repeated_into_its_own_elements_alone(run: Run) -> None:
    def calls() -> Any:
        whole = torch.ones(3, 2)
        dist.all_reduce(whole[:, 0])
        return whole.tolist()

    assert run(_twice(calls), 2) == [[[2.0, 1.0]] * 3] * 2


def test_what_is_held_back_for_a_coalesced_call_is_not_repeated_before(run: Run) -> None:
    def calls() -> Any:
        first, second = torch.ones(2), torch.ones(3)
        dist.all_reduce(first)
        with dist._coalescing_manager():
            dist.all_reduce(first)
            dist.all_reduce(second)
            held = first.tolist()
        return held, first.tolist(), second.tolist()

    assert run(_twice(calls), 2) == [([2.0, 2.0], [4.0, 4.0], [2.0, 2.0, 2.0])] * 2


def test_inference_mode_is_no_obstacle(run: Run) -> None:
    def calls() -> Any:
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        with torch.inference_mode():
            made = torch.ones(2)
            for _ in range(2):
                dist.all_reduce(made)
        dist.all_reduce(made)
        return made.tolist()

    assert run(calls, 2) == [[8.0, 8.0]] * 2
