"""mindspore.communication: ranks, named groups, GlobalComm, before and after init."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch

import collshim
from collshim import world
from collshim.mindspore import communication as ms_comm
from collshim.mindspore._c_expression import GroupOptions
from collshim.mindspore.communication import GlobalComm, comm_func
from collshim.mindspore.mint import distributed as dist
from tests.adapters.conftest import Refused, Run, each_of

comm: Any = ms_comm  # calls that the types forbid are tested too
LAUNCHERS_VARIABLES = (
    "RANK_ID", "RANK_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_RANK_SIZE", "LOCAL_WORLD_SIZE",
)  # fmt: skip


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Clear any launcher's environment; this process has no world."""
    assert world.peek() is None
    for name in LAUNCHERS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_ranks_before_init_come_from_the_environment(alone: pytest.MonkeyPatch) -> None:
    def told() -> tuple[int, ...]:
        return comm.get_rank(), comm.get_group_size(), comm.get_local_rank(), comm.get_local_rank_size()

    assert told() == (0, 1, 0, 1)
    for name, value in {"RANK_ID": "5", "RANK_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_RANK_SIZE": "4"}.items():
        alone.setenv(name, value)
    assert told() == (5, 8, 1, 4)


def test_thread_rank_knows_its_number_before_init() -> None:
    assert collshim.launch(comm.get_rank, 2, timeout=200) == [0, 1]
    assert collshim.launch(comm.get_group_size, 2, timeout=200) == [2, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda: comm.create_group("g", [0, 1]),
        lambda: comm.destroy_group("g"),
        lambda: comm.get_process_group_ranks(),
        lambda: comm.get_world_rank_from_group_rank("g", 0),
        lambda: comm.get_group_rank_from_world_rank(0, "g"),
        lambda: comm.get_comm_name(),
    ],
)
def test_calls_before_init_ask_for_init(call: Callable[[], Any]) -> None:
    wanted = "Distributed Communication has not been inited.You can't invoke this interface yet. Please call"
    with pytest.raises(RuntimeError) as caught:
        call()
    assert isinstance(caught.value, collshim.WorldError)
    assert wanted in str(caught.value)


def shown() -> tuple[Any, ...]:
    return GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED, GlobalComm.CHECK_ENVS


@pytest.mark.parametrize("backend", ["hccl", "nccl", "mccl"])
def test_global_comm_changes_with_init(backend: str) -> None:
    def rank() -> Any:
        before = shown()
        returned = comm.init(backend)
        return returned, before, shown()

    wanted = (None, ("hccl", "hccl_world_group", False, True), (backend, f"{backend}_world_group", True, True))
    assert collshim.launch(rank, 2, timeout=200) == [wanted] * 2
    assert shown()[2] is False


def test_init_chooses_a_backend_and_can_be_repeated() -> None:
    def rank() -> Any:
        comm.init()
        first = GlobalComm.BACKEND
        comm.create_group("g", [0, 1])
        comm.init("hccl")
        return first, GlobalComm.BACKEND, comm.get_group_size("g")

    default = "nccl" if torch.cuda.is_available() else "mccl"
    assert collshim.launch(rank, 2, timeout=200) == [(default, "hccl", 2)] * 2


def test_init_refuses_unknown_backends(refused: Refused) -> None:
    no_string = refused(TypeError, lambda: comm.init(1))
    assert "For 'init', the argument 'backend_name' must be a string, but got the type : <class 'int'>" in no_string
    other = refused(RuntimeError, lambda: comm.init("bad"))
    assert "must be one of 'hccl', 'nccl' and 'mccl', but got 'backend_name' : bad" in other
    assert GlobalComm.INITED is False


def test_constants_are_the_names_of_the_world() -> None:
    names = (comm.HCCL_WORLD_COMM_GROUP, comm.NCCL_WORLD_COMM_GROUP, comm.MCCL_WORLD_COMM_GROUP)
    assert names == ("hccl_world_group", "nccl_world_group", "mccl_world_group")


def test_group_keeps_the_order_of_its_ranks(run: Run) -> None:
    def rank() -> Any:
        if comm.get_rank() not in (1, 3):
            return None
        returned = comm.create_group("g31", [3, 1])
        assert returned is None
        return (
            comm.get_rank("g31"),
            comm.get_group_size("g31"),
            comm.get_process_group_ranks("g31"),
            comm.get_world_rank_from_group_rank("g31", 0),
            comm.get_group_rank_from_world_rank(3, "g31"),
            comm.get_local_rank("g31"),
            comm.get_local_rank_size("g31"),
            comm_func.all_gather_into_tensor(torch.tensor([comm.get_rank()]), "g31")[0].tolist(),
        )

    _, one, _, three = run(rank, 4)
    assert one == (1, 2, [3, 1], 3, 0, 1, 2, [3, 1])
    assert three == (0, 2, [3, 1], 3, 0, 0, 2, [3, 1])


def test_non_member_does_not_know_the_group(run: Run, refused: Refused) -> None:
    def rank() -> Any:
        if comm.get_rank() == 1:
            return comm.create_group("one", [1])
        return [
            refused(RuntimeError, lambda: comm.get_rank("one")),
            refused(RuntimeError, lambda: comm.get_group_size("one")),
            refused(RuntimeError, lambda: comm.get_world_rank_from_group_rank("one", 0)),
            refused(RuntimeError, lambda: comm.get_group_rank_from_world_rank(1, "one")),
            refused(RuntimeError, lambda: comm.get_process_group_ranks("one")),
            refused(KeyError, lambda: comm.destroy_group("one")),
            refused(RuntimeError, lambda: comm.create_group("one", [1])),
        ]

    texts = run(rank, 2)[0]
    assert all("The group one does not exist." in text for text in texts[:4])
    assert "Group one doesn't include this rank 0 process." in texts[4]
    assert "'one'" in texts[5]
    assert "rank 0 is not one" in texts[6]


@each_of(2, gives=[(True, 1, 2.0), (True, 0, 2.0)])
def test_destroyed_group_can_be_created_again(refused: Refused) -> Any:
    comm.create_group("g", [0, 1])
    comm.destroy_group("g")
    gone = refused(RuntimeError, lambda: comm.get_rank("g"))
    comm.create_group("g", [1, 0])
    return "does not exist" in gone, comm.get_rank("g"), comm_func.all_reduce(torch.ones(1), group="g")[0].item()


def of_group(name: str) -> list[tuple[Callable[[], Any], type[Exception], str]]:
    """Return the calls that every query of a group refuses."""
    called = getattr(comm, name)
    return [
        (lambda: called(None), TypeError, f"For '{name}', the argument 'group' must be type of string"),
        (lambda: called("nope"), RuntimeError, "The group nope does not exist."),
        (lambda: called("nccl_world_group"), RuntimeError, "The group nccl_world_group does not exist."),
    ]


create, to_world, to_group = comm.create_group, comm.get_world_rank_from_group_rank, comm.get_group_rank_from_world_rank
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: create("g", [0, 1], {}), TypeError, "must be type of GroupOptions, but got 'options' type : <class 'dict"),
    (lambda: create("g", [0.0, 1]), TypeError, "must be a list of int"),
    (lambda: create("g", [0, 9]), RuntimeError, "Failed to create communication group for g with rank ids [0, 9]"),
    (lambda: create("g", [0, 9]), RuntimeError, "ranks are from 0 to"),
    (lambda: create("g", [0, -1]), TypeError, "must be a list of int, none negative"),
    (lambda: comm.destroy_group("hccl_world_group"), ValueError, "The world_group does not support destruction."),
    *of_group("get_local_rank"),
    *of_group("get_local_rank_size"),
    (lambda: to_group(1, "hccl_world_group"), RuntimeError, "The group hccl_world_group does not exist."),
    (lambda: to_world("mccl_world_group", 99), RuntimeError, "mccl_world_group doesn't contain the group rank 99"),
    (lambda: to_world("mccl_world_group", "a"), TypeError, "the argument 'group_rank_id' must be type of int"),
]


@pytest.mark.parametrize(("call", "theirs", "text"), REFUSED)
def test_invalid_group_call_is_refused(
    run: Run, refused: Refused, call: Callable[[], Any], theirs: type[Exception], text: str
) -> None:
    assert all(text in told for told in run(lambda: refused(theirs, call), 2))


@each_of(2, gives=[(2, 2, {"hccl_buffer_size": 400})] * 2)
def test_group_options_are_accepted_and_ignored(refused: Refused) -> Any:
    options, untyped = GroupOptions(), cast(Any, dist)
    options.hccl_config = {"hccl_buffer_size": 400}
    comm.create_group("g", [0, 1], options)
    text = refused(TypeError, lambda: untyped.new_group([0, 1], pg_options={}))
    assert "must be type GroupOptions, but got <class 'dict'>" in text
    refused(TypeError, lambda: setattr(options, "hccl_config", 3))
    named = dist.new_group([0, 1], pg_options=options)
    return comm.get_group_size("g"), comm.get_group_size(named), options.hccl_config


@each_of(2, gives=[(None, 0, True), (None, 1, True)])
def test_release_forgets_groups_and_keeps_the_world(refused: Refused) -> Any:
    comm.create_group("g", [0, 1])
    returned = comm.release()
    assert "does not exist" in refused(RuntimeError, lambda: comm.get_rank("g"))
    return returned, comm.get_rank(), GlobalComm.INITED


@each_of(2, gives=["", ""])
def test_new_group_of_ranks_that_do_not_exist_has_no_name() -> str:
    return dist.new_group([0, 9])


@pytest.mark.unranked
def test_leaving_before_init_does_nothing() -> None:
    ms_comm.release()
    dist.destroy_process_group()
    assert not GlobalComm.INITED


@pytest.mark.unranked
@pytest.mark.parametrize("call", [lambda: comm.create_group(1, [0]), lambda: comm.destroy_group(1)])
def test_types_are_checked_before_init(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="the argument 'group' must be type of string"):
        call()
