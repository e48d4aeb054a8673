"""torch 2.15's hooks around a group's calls: its flight recorder, and the program's own."""

from __future__ import annotations

import gc
import pickle
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch._C._distributed_c10d
import torch.distributed as torchs

import collshim
import collshim.torch.distributed as dist
from collshim.torch_release import HAS_PYTHON_BACKENDS

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(not HAS_PYTHON_BACKENDS, reason="torch before 2.15 has no hooks of groups"),
]

_bindings: Any = torch._C._distributed_c10d

SIZE = 2
ones = partial(torch.ones, 2)


def _entries() -> list[Any]:
    found = pickle.loads(_bindings._dump_fr_trace(backend="collshim"))["entries"]
    asked = ("profiling_name", "input_sizes", "output_sizes", "process_group", "state")
    return [[entry[name] for name in asked] for entry in found]


def _recorded() -> list[Any]:
    rank = collshim.current().rank
    torchs.init_process_group("collshim", store=torchs.HashStore(), rank=rank, world_size=SIZE)
    part: Any = torchs.new_group([0, 1], group_desc="part")
    torchs.all_reduce(ones())
    torchs.broadcast(ones(), 1, group=part)
    torchs.all_gather_into_tensor(torch.zeros(4), ones())
    torchs.barrier()
    if rank == 0:
        torchs.send(ones(), 1)
    else:
        torchs.recv(ones(), 0)
    entries = _entries()
    expected = [part.group_name, "part"]
    torchs.destroy_process_group()
    assert [*entries[1][3]] == expected
    return [[name, sent, received, group[1], state] for name, sent, received, group, state in entries]


@pytest.mark.processes
def test_recorder_has_an_entry_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "100")
    expected = [
        ["collshim:all_reduce", [[2]], [[2]], "default_pg", "scheduled"],
        ["collshim:broadcast", [[2]], [[2]], "part", "scheduled"],
        ["collshim:_all_gather_base", [[2]], [[4]], "default_pg", "scheduled"],
        ["collshim:barrier", [], [], "default_pg", "scheduled"],
    ]
    one, other = collshim.launch(_recorded, SIZE, ranks="processes", timeout=200)
    assert one == [*expected, ["collshim:send 0->1", [[2]], [], "default_pg", "scheduled"]]
    assert other == [*expected, ["collshim:recv 1<-0", [], [[2]], "default_pg", "scheduled"]]


def _alone(scenario: Callable[[Any], Any]) -> Any:
    """Run a scenario with the default group of a single rank."""

    def rank() -> Any:
        dist.init_process_group("gloo")
        try:
            return scenario(dist.group.WORLD)
        finally:
            dist.destroy_process_group()

    return collshim.launch(rank, 1, timeout=200)[0]


def _root(kind: Any) -> Any:
    options = kind()
    options.rootRank = 0
    return options


# Calls of a group's methods in torch's two forms, and what a hook sees: the operation and the sizes of its tensors.
CALLS: dict[str, tuple[Callable[[Any], Any], str, list[int], list[int]]] = {
    "allreduce": (lambda world: world.allreduce([ones()], torchs.AllreduceOptions()), "ALLREDUCE", [2], []),
    "allreduce of a tensor": (lambda world: world.allreduce(ones(), torchs.ReduceOp.MAX), "ALLREDUCE", [2], []),
    "several tensors": (lambda world: world.allreduce([ones(), ones()]), "ALLREDUCE", [2, 2], []),
    "sparse": (lambda world: world.allreduce([torch.eye(2).to_sparse()]), "ALLREDUCE", [4], []),
    "allreduce_coalesced": (lambda world: world.allreduce_coalesced([ones()]), "ALLREDUCE_COALESCED", [2], []),
    "broadcast": (lambda world: world.broadcast([ones()], _root(torchs.BroadcastOptions)), "BROADCAST", [2], []),
    "reduce": (lambda world: world.reduce(ones(), 0), "REDUCE", [2], []),
    "allgather": (lambda world: world.allgather([[ones()]], [ones()]), "ALLGATHER", [2], [2]),
    "allgather of a tensor": (lambda world: world.allgather([ones()], ones()), "ALLGATHER", [2], [2]),
    "allgather_coalesced": (
        lambda world: world.allgather_coalesced([[ones()]], [ones()]),
        "ALLGATHER_COALESCED",
        [2],
        [2],
    ),
    "all_gather_single": (lambda world: world.all_gather_single(ones(), ones()), "ALLGATHER_BASE", [2], [2]),
    "an alias": (
        lambda world: world.allgather_into_tensor_coalesced([ones()], [ones()]),
        "ALLGATHER_INTO_TENSOR_COALESCED",
        [2],
        [2],
    ),
    "gather": (lambda world: world.gather([[ones()]], [ones()], _root(torchs.GatherOptions)), "GATHER", [2], [2]),
    "gather_single": (lambda world: world.gather_single(ones(), ones()), "GATHER", [2], [2]),
    "scatter": (lambda world: world.scatter(ones(), [ones()], 0), "SCATTER", [2], [2]),
    "reduce_scatter": (lambda world: world.reduce_scatter([ones()], [[ones()]]), "REDUCE_SCATTER", [2], [2]),
    "reduce_scatter_single": (
        lambda world: world.reduce_scatter_single(ones(), ones()),
        "REDUCE_SCATTER_BASE",
        [2],
        [2],
    ),
    "reduce_scatter_tensor_coalesced": (
        lambda world: world.reduce_scatter_tensor_coalesced([ones()], [ones()]),
        "REDUCE_SCATTER_TENSOR_COALESCED",
        [2],
        [2],
    ),
    "alltoall": (lambda world: world.alltoall([ones()], [ones()]), "ALLTOALL", [2], [2]),
    "alltoall_base": (lambda world: world.alltoall_base(ones(), ones(), [2], [2]), "ALLTOALL_BASE", [2], [2]),
    "barrier": (lambda world: world.barrier(), "BARRIER", [], []),
    "torch.ops": (
        lambda world: torch.ops.c10d.broadcast_([ones()], world.boxed(), 0, 0)[1],
        "BROADCAST",
        [2],
        [],
    ),
}


def _seen(call: Callable[[Any], Any], world: Any) -> list[Any]:
    seen: list[Any] = []
    count = torch.Tensor.numel

    def before(args: Any) -> None:
        seen.append([args.name.name, [*map(count, args.input_tensors)], [*map(count, args.output_tensors)]])

    world.register_pre_hook(7, before)
    world.register_post_hook(7, lambda args: seen.append([args.name.name, args.work.wait()]))
    call(world).wait()
    world.unregister_pre_hook(7)
    world.unregister_post_hook(7)
    call(world).wait()
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_hooks_see_each_call_once(name: str) -> None:
    call, operation, inputs, outputs = CALLS[name]
    assert _alone(partial(_seen, call)) == [[operation, inputs, outputs], [operation, True]]


UNSEEN: dict[str, Callable[[Any], Any]] = {
    "an iterator": lambda world: world.allreduce(iter([ones()])),
    "without memory": lambda world: world.allreduce([torch.ones(2, device="meta")]),
    "a subclass": lambda world: world.allreduce([ones().as_subclass(type("Own", (torch.Tensor,), {}))]),
}


def _unseen(call: Callable[[Any], Any], world: Any) -> list[str]:
    seen: list[str] = []
    world.register_pre_hook(7, lambda args: seen.append(args.name.name))
    call(world).wait()
    return seen


@pytest.mark.parametrize("name", UNSEEN)
def test_other_arguments_go_without_hooks(name: str) -> None:
    assert _alone(partial(_unseen, UNSEEN[name])) == []


def _messages(world: Any) -> list[Any]:
    seen: list[Any] = []
    world.register_pre_hook(7, lambda args: seen.append([args.name.name, args.root]))
    world.send([ones()], 0, 1)
    world.recv(received := [torch.zeros(2)], 0, 1).wait()
    world.send([ones()], 0, 2)
    world.recv_anysource([torch.zeros(2)], 2).wait()
    assert received[0].tolist() == [1.0, 1.0]
    return seen


def test_hooks_see_messages() -> None:
    assert _alone(_messages) == [["SEND", 0], ["RECV", 0], ["SEND", 0], ["RECV", -1]]


def _works(world: Any) -> bool:
    world.register_pre_hook(7, lambda args: None)
    work = world.allreduce([own := ones()])
    return isinstance(work, dist.Work) and work.result()[0] is own


def test_call_with_hooks_returns_the_same_kind_of_work() -> None:
    assert _alone(_works)


def _backward(world: Any) -> list[str]:
    world.register_pre_hook(7, lambda args: None)
    own = torch.ones(2, requires_grad=True) * 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        world.allreduce([own]).wait()
        own.sum().backward()
    return [str(warning.message) for warning in caught]


def test_backward_pass_warns_once_as_without_hooks() -> None:
    (text,) = _alone(_backward)
    assert "torch.distributed.nn.functional have gradients" in text


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "no tensors": lambda world: world.allreduce([]),
    "no arguments": lambda world: world.allreduce(),
    "shapes": lambda world: world.allreduce([torch.zeros(1), torch.zeros(2)]),
    "root": lambda world: world.broadcast([ones()], 5),
    "layout": lambda world: world.broadcast([torch.eye(2).to_sparse()], 0),
    "parts": lambda world: world.allgather([[ones(), ones()]], [ones()]),
    "peer": lambda world: world.send([ones()], 2**40, 0),
}


def _failures(mistake: Callable[[Any], Any], world: Any) -> list[Any]:
    found = []
    for is_hooked in (False, True):
        world.is_hooked = is_hooked
        if is_hooked:
            world.register_pre_hook(7, lambda args: None)
        try:
            mistake(world)
        except Exception as error:
            found.append([type(error), str(error)])
    return found


@pytest.mark.parametrize("name", MISTAKES)
def test_call_with_hooks_raises_the_same_error(name: str) -> None:
    without, with_hooks = _alone(partial(_failures, MISTAKES[name]))  # which fails if one raises nothing
    assert with_hooks == without


def _failing_hook(world: Any) -> int:
    def refuse(args: Any) -> None:
        raise KeyError("not now")

    world.register_pre_hook(7, refuse)
    before = world.posted
    with pytest.raises(KeyError, match="not now"):
        world.barrier()
    world.unregister_pre_hook(7)
    world.barrier().wait()
    return int(world.posted - before)


def test_error_of_a_hook_is_the_calls() -> None:
    assert _alone(_failing_hook) == 1


class _Seen:
    def __init__(self) -> None:
        self.names: list[str] = []

    def add(self, args: Any) -> None:
        self.names.append(args.name.name)


def _forgotten(world: Any) -> Any:
    hook = weakref.WeakSet([seen := _Seen()])
    world.register_pre_hook(7, seen.add)
    torchs.all_reduce(ones())
    assert seen.names == ["ALLREDUCE"]
    registry: Any = torchs.distributed_c10d._world
    return weakref.ref(world), hook, registry.pg_flight_recorder_hooks


def _left_after_the_group() -> list[Any]:
    torchs.init_process_group("collshim", store=torchs.HashStore(), rank=0, world_size=1)
    group, hooks, recorders = _forgotten(torchs.group.WORLD)
    recorded = [repr(each) for each in recorders]
    torchs.destroy_process_group()
    gc.collect()
    return [len(recorded), group(), len(hooks), len(recorders)]


@pytest.mark.processes
def test_nothing_stays_attached_to_a_destroyed_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "100")
    assert collshim.launch(_left_after_the_group, 1, ranks="processes", timeout=200) == [[1, None, 0, 0]]


def _is_hooked() -> bool:
    torchs.init_process_group("collshim", store=torchs.HashStore(), rank=0, world_size=1)
    world: Any = torchs.group.WORLD
    try:
        return bool(world.is_hooked)
    finally:
        torchs.destroy_process_group()


@pytest.mark.processes
@pytest.mark.parametrize(("size", "expected"), [("0", False), ("100", True), (None, True)])
def test_calls_take_the_way_round_if_torch_records(
    monkeypatch: pytest.MonkeyPatch, size: str | None, expected: bool
) -> None:
    monkeypatch.delenv("TORCH_NCCL_TRACE_BUFFER_SIZE", raising=False)
    monkeypatch.delenv("TORCH_FR_BUFFER_SIZE", raising=False)
    if size is not None:
        monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", size)
    assert collshim.launch(_is_hooked, 1, ranks="processes", timeout=200) == [expected]


def _recorders(world: Any) -> list[Any]:
    registry: Any = torchs.distributed_c10d._world  # the rank's own
    return [world.is_hooked, *registry.pg_flight_recorder_hooks]


def test_recorder_of_the_process_does_not_record_ranks_that_are_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "100")
    assert _alone(_recorders) == [False]


def _not_a_number(world: Any) -> None:
    with pytest.raises(RuntimeError, match="NaN"):
        world.allreduce([torch.tensor([float("nan")])])


def test_torchs_check_for_nan_sees_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIST_NAN_CHECK", "1")
    _alone(_not_a_number)
