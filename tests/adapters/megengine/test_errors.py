"""Calls that are refused, with the exception and its text; nothing is sent, so the ranks continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.megengine as mge
from collshim.megengine.functional import distributed as F

dist = mge.distributed
Refused = Callable[..., list[BaseException]]

ASSERTING = ["all_reduce_sum", "all_reduce_max", "all_reduce_min", "all_gather", "reduce_sum", "gather"]
READING_RANK = ["broadcast", "scatter"]
READING_SIZE = ["reduce_scatter_sum", "all_to_all"]
EVERY = [*ASSERTING, *READING_RANK, *READING_SIZE]


def call(name: str, shape: tuple[int, ...], group: Any, arguments: dict[str, Any]) -> Any:
    group = dist.WORLD if group == "WORLD" else group
    return getattr(F, name)(torch.zeros(shape), group, **arguments)


def then_go_on(fn: Callable[..., Any], *args: Any) -> Any:
    """Make a call and raise its refusal, after a second call that shows that nothing was sent."""
    try:
        fn(*args)
    except Exception:
        assert F.all_gather(np.array([dist.get_rank()])).tolist() == list(range(dist.get_world_size()))
        raise
    return None


def refusals(refused: Refused, name: str, shape: tuple[int, ...], group: Any = "WORLD", **arguments: Any) -> Any:
    errors = refused(then_go_on, 2, call, name, shape, group, arguments)
    assert all(isinstance(error, collshim.ArgumentError) for error in errors)
    return errors


@pytest.mark.parametrize("name", EVERY)
def test_calls_need_init_process_group(name: str) -> None:
    theirs: type[Exception] = AssertionError if name in ASSERTING else TypeError
    text = "please call init_process_group first" if name in ASSERTING else r"object of type 'NoneType' has no len\(\)"
    with pytest.raises(theirs, match=text) as caught:
        getattr(F, name)(torch.zeros(2))
    assert isinstance(caught.value, collshim.WorldError)


def test_remote_recv_and_bcast_list_before_init_process_group() -> None:
    with pytest.raises(AssertionError, match="please call init_process_group first"):
        F.remote_recv(1)
    with pytest.raises(AttributeError, match="please call init_process_group first"):
        F.remote_recv(0)
    with pytest.raises(AssertionError, match="please call init_process_group first"):
        dist.bcast_list_([torch.zeros(2)])
    dist.bcast_list_([])  # as in MegEngine, nothing is sent


def test_launched_rank_must_call_init_process_group() -> None:
    with pytest.raises(collshim.RankError) as caught:
        collshim.launch(F.all_reduce_sum, 2, args=(torch.zeros(2),), timeout=200)
    assert isinstance(caught.value.exception, AssertionError)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("group", [[0, 1], None], ids=["list", "None"])
def test_group_must_be_a_group(refused: Refused, name: str, group: Any) -> None:
    for error in refusals(refused, name, (2,), group):
        if name in ASSERTING or (name in READING_SIZE and group is None):
            assert isinstance(error, AssertionError)
        else:
            attribute = "rank" if name in READING_RANK else "size"
            assert isinstance(error, AttributeError)
            assert str(error).startswith(f"'{type(group).__name__}' object has no attribute '{attribute}'")


NEGATIVE = "should be counted from the front"
PAST = "list index out of range"


@pytest.mark.parametrize(
    ("name", "shape", "arguments", "theirs", "text"),
    [
        *((name, (2, 4), {"axis": -1}, RuntimeError, "axis is -1") for name in ("all_gather", "gather", "scatter")),
        ("reduce_scatter_sum", (2, 4), {"axis": -1}, RuntimeError, NEGATIVE),
        ("all_to_all", (2, 4), {"split_axis": -1}, RuntimeError, NEGATIVE),
        ("all_to_all", (2, 4), {"concat_axis": -1}, RuntimeError, NEGATIVE),
        ("reduce_scatter_sum", (2, 4), {"axis": 2}, IndexError, PAST),
        ("all_to_all", (2, 4), {"concat_axis": 2}, IndexError, PAST),
        ("gather", (), {}, AssertionError, "exceeds the dim of the tensor, the tensor shape is ()"),
        ("reduce_scatter_sum", (), {}, IndexError, PAST),
        ("all_to_all", (), {}, IndexError, PAST),
        ("reduce_sum", (0, 2), {}, RuntimeError, "empty (shape (0, 2))"),
        *(
            ("all_reduce_sum", (2,), {"device": device}, RuntimeError, f"invalid comp node id: {device}")
            for device in ("nonsense", "gpu99", "xpu")
        ),
    ],
)
def test_mismatched_input_is_refused(
    refused: Refused, name: str, shape: tuple[int, ...], arguments: Any, theirs: type[Exception], text: str
) -> None:
    for error in refusals(refused, name, shape, **arguments):
        assert isinstance(error, theirs)
        assert text in str(error)


@pytest.mark.parametrize(("shape", "theirs"), [((3,), AssertionError), ((), IndexError)])
def test_scatter_is_refused_on_the_root(shape: tuple[int, ...], theirs: type[Exception], run: Any) -> None:
    with pytest.raises(collshim.RankError) as caught:
        run(call, 2, "scatter", shape, "WORLD", {"axis": 0})
    assert caught.value.rank == 0
    assert isinstance(caught.value.exception, theirs)


def of_a_list() -> None:
    F.all_reduce_sum([1.0, 2.0])


def test_list_input_is_refused(refused: Refused) -> None:
    for error in refused(then_go_on, 2, of_a_list):
        assert isinstance(error, AttributeError)
        assert str(error).startswith("'list' object has no attribute 'dtype'")


def to_nobody() -> None:
    F.remote_send(torch.zeros(2), 2)


def test_destination_outside_the_world_is_refused(refused: Refused) -> None:
    assert all(isinstance(error, IndexError) for error in refused(then_go_on, 2, to_nobody))


def by_no_mode() -> None:
    F.collective_comm(torch.zeros(2), "SHUFFLE", dist.WORLD, None)


def test_unknown_reduce_mode_is_refused(refused: Refused) -> None:
    assert all("'SHUFFLE', should be one of REDUCE_SUM" in str(error) for error in refused(by_no_mode, 2))


def of_ranks(ranks: Any) -> None:
    dist.new_group(ranks)


@pytest.mark.parametrize(
    "ranks",
    [[np.int64(0), np.int64(1)], [0, 1, 2], [-1, 0, 1], [0, 0, 1]],
    ids=["NumPy", "outside", "negative", "twice"],
)
def test_invalid_group_ranks_are_refused(refused: Refused, ranks: list[Any]) -> None:
    assert all(isinstance(error, AssertionError) for error in refused(then_go_on, 2, of_ranks, ranks))


def without_itself() -> None:
    dist.new_group([1 - dist.get_rank()])


def test_group_without_the_caller_is_refused(refused: Refused) -> None:
    for rank, error in enumerate(refused(without_itself, 2)):
        assert isinstance(error, AssertionError)
        assert f"ranks are [{1 - rank}], should contain the caller's (rank {rank} of 2)" in str(error)


def barrier_of(group: Any) -> None:
    dist.group_barrier(group)


def test_group_barrier_needs_a_group(refused: Refused) -> None:
    assert all(isinstance(error, AssertionError) for error in refused(barrier_of, 2, [0, 1]))
