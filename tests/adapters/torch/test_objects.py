"""Objects between ranks: what every rank receives, and calls at which torch would hang or exit."""

from __future__ import annotations

import pickle
import sys
import threading
from typing import Any

import pytest

import collshim
import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, each_of

_UNPICKLABLE = pickle.PicklingError if sys.version_info >= (3, 14) else AttributeError
"""What pickle raises for a function that has no global name."""


@each_of(3, gives=[([], [2]), None, ([10000, 0], [2])])
def test_unequal_objects_are_exchanged_in_a_subgroup() -> Any:
    group = dist.new_group([2, 0], sort_ranks=False)
    text = "x" * 5000 * dist.get_rank()
    if group == -100:
        with pytest.warns(UserWarning, match="Running gather_object on global rank 1"):
            return dist.gather_object(text, group=group)
    dist.gather_object(text, found := [None] * 2 if dist.get_rank() == 2 else None, group=group, group_dst=0)
    dist.broadcast_object_list(sent := [dist.get_rank()], src=2, group=group)
    return [len(each) for each in found or []], sent  # type: ignore[arg-type]


@each_of(2, gives=[False, True])
def test_broadcast_source_keeps_its_object() -> bool:
    lock = [threading.Event] if dist.get_rank() == 1 else [None]
    before = lock[0]
    dist.broadcast_object_list(lock, src=1)
    return lock[0] is before and lock[0] is threading.Event


@each_of(2, gives=["sent", "broadcast_object_list: the list's length is 3, the source's is 2"])
def test_lists_of_unequal_length_fail_at_the_receiver() -> str:
    try:
        dist.broadcast_object_list([1] * (2 + dist.get_rank()))
    except RuntimeError as error:
        return str(error)
    return "sent"


@each_of(3, gives=[None, [(0, [0]), (2, [2])], None])
def test_any_source_is_accepted_and_reported() -> Any:
    if dist.get_rank() != 1:
        return dist.send_object_list([dist.get_rank()], 1)
    found = []
    for _ in range(2):
        source = dist.recv_object_list(received := [None])
        found.append((source, received))
    return sorted(found)


@pytest.mark.ranks(2)
def test_unpicklable_object_is_refused_before_sending(refused: Refused) -> None:
    refused(_UNPICKLABLE, lambda: dist.all_gather_object([None] * 2, lambda: None), "pickle")
    refused(TypeError, lambda: dist.all_gather_object([None] * 2, threading.Lock()), "pickle")
    dist.all_gather_object(found := [None] * 2, dist.get_rank())
    assert found == [0, 1]


@pytest.mark.ranks(2)
def test_short_list_is_filled_partly() -> None:
    found: list[Any] = [None]
    with pytest.raises(IndexError, match="list assignment index out of range") as caught:
        dist.all_gather_object(found, dist.get_rank())
    assert isinstance(caught.value, collshim.CollshimError)
    assert found == [0]


@each_of(2, gives=[({0: 10, 1: 11}, {0: 0}), ({0: 10, 1: 11}, {0: 1})])
def test_dict_is_filled_like_a_list() -> Any:
    gathered: Any = {}
    dist.all_gather_object(gathered, 10 + dist.get_rank())
    given: Any = {0: dist.get_rank()}
    dist.broadcast_object_list(given, 1)
    return gathered, given  # torch sends a dict's keys


@pytest.mark.ranks(2)
def test_invalid_object_calls_are_refused(refused: Refused) -> None:
    mine = dist.get_rank()
    refused(ValueError, lambda: dist.scatter_object_list([], [1, 2]), "list of size at least 1")
    refused(ValueError, lambda: dist.scatter_object_list([None], None, src=mine), "must provide non-None")
    refused(RuntimeError, lambda: dist.scatter_object_list([None], [1], src=mine), "should be 2, one per rank")
    refused(ValueError, lambda: dist.gather_object(1, None, dst=mine), "must be specified on destination")
    refused(ValueError, lambda: dist.gather_object(1, [0, 0], dst=1 - mine), "must NOT be specified")
    refused(ValueError, lambda: dist.send_object_list([1], mine), "Invalid destination rank")
    refused(ValueError, lambda: dist.recv_object_list([1], mine), "Invalid source rank")
    refused(ValueError, lambda: dist.send_object_list([1]), "Must specify global_rank or group_rank")
