"""send, recv, isend, irecv."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import collshim
import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of

LONG = 5000
"""The number of elements of a message that is not sent eagerly."""


@each_of(3, gives=[-100, (2, 1), 1])
def test_group_ranks_and_global_ranks() -> Any:
    group = dist.new_group([2, 1], sort_ranks=False)
    if dist.get_rank() == 2:
        dist.send(torch.ones(1), group_dst=1, group=group)
        return dist.recv(torch.zeros(1), 1, group)
    if dist.get_rank() == 1:
        source = dist.recv(torch.zeros(1), group=group, group_src=0)
        dist.send(torch.ones(1), 2, group)
        return source, dist.get_rank(group)
    return group


@pytest.mark.parametrize("length", [3, LONG])
@each_of(2, gives=[(0, [1.0]), (1, [2.0])])
def test_isend_to_self_meets_its_irecv(length: int) -> Any:
    mine = dist.get_rank()
    sending = dist.isend(torch.full((length,), 1.0 + mine), mine)
    receiving = dist.irecv(tensor := torch.zeros(length))
    assert sending is not None
    assert receiving is not None
    assert receiving.wait() is True
    assert sending.wait() is True
    return receiving.source_rank(), tensor.unique().tolist()


def _in_other_shapes() -> list[Any]:
    found = []
    for sent, awaited in SHAPES:
        own = torch.arange(float(torch.Size(sent).numel())).reshape(sent)
        for _ in range(2):
            if dist.get_rank() == 0:
                dist.send(own, 1)
            else:
                dist.recv(tensor := torch.zeros(awaited), 0)
                found.append(bool(torch.equal(tensor.flatten(), own.flatten())))
    return found


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), (1,)), ((6,), (2, 3)), ((LONG, 2), (2 * LONG,))]


@each_of(2, gives=[[], [True] * 6])
def test_message_may_be_received_in_a_like_shape() -> Any:
    return _in_other_shapes()


def _on_a_process() -> list[Any]:
    dist.init_process_group("gloo")
    found = _in_other_shapes()
    dist.destroy_process_group()
    return found


@pytest.mark.processes
@pytest.mark.parametrize("check", [True, False])
def test_processes_receive_in_like_shapes(check: bool) -> None:
    with collshim.options(check=check):
        assert collshim.launch(_on_a_process, 2, ranks="processes", timeout=200) == [[], [True] * 6]


@pytest.mark.ranks(2)
def test_source_rank_is_for_receives_only(refused: Refused) -> None:
    work = dist.barrier(async_op=True)
    assert work is not None
    work.wait()
    refused(RuntimeError, work.source_rank, "recv-from-any call")


@pytest.mark.ranks(2)
def test_exactly_one_form_of_rank_is_required(refused: Refused) -> None:
    tensor, both = torch.zeros(1), "Can't specify both group_rank and global_rank"
    refused(ValueError, lambda: dist.send(tensor), "Must specify global_rank or group_rank")
    refused(ValueError, lambda: dist.isend(tensor), "Must specify global_rank or group_rank")
    refused(ValueError, lambda: dist.send(tensor, 1, group_dst=1), both)
    refused(ValueError, lambda: dist.recv(tensor, 1, group_src=1), both)


@pytest.mark.ranks(2)
def test_send_to_self_is_an_error(refused: Refused) -> None:
    mine = dist.get_rank()
    refused(ValueError, lambda: dist.send(torch.zeros(1), mine), "Invalid destination rank: destination rank")


@pytest.mark.parametrize("number", [2, 99, -1])
@pytest.mark.parametrize("call", [dist.send, dist.isend, dist.recv, dist.irecv])
def test_invalid_rank_is_an_error_on_this_rank(run: Run, refused: Refused, call: Any, number: int) -> None:
    run(lambda: refused(RuntimeError, lambda: call(torch.zeros(1), number), f"is {number}, should be from 0 to 1"), 2)


def test_outside_the_group_send_fails_and_others_warn(run: Run, refused: Refused) -> None:
    def rank() -> Any:
        group = dist.new_group([0])
        if dist.get_rank() == 0:
            return None
        tensor = torch.zeros(1)
        refused(ValueError, lambda: dist.send(tensor, 0, group), "Invalid process group specified")
        return [call(tensor, 0, group) for call in (dist.isend, dist.recv, dist.irecv)]

    with pytest.warns(UserWarning, match="global rank 1 which does not belong to the given group") as told:
        assert run(rank, 2)[1] == [None, -1, None]
    functions = [str(warning.message).split()[1] for warning in told]
    assert functions == ["isend", "irecv", "irecv"]
