"""Other ways to move data than flow.comm: _C, distributed, checkpoints, objects, samplers; and test decorators."""

from __future__ import annotations

import contextlib
import doctest
import pickle
import types
import unittest
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import collshim
import collshim.oneflow as flow
import collshim.oneflow.unittest as flow_unittest
from collshim.oneflow.framework import check_point_v2
from collshim.oneflow.framework.unittest import check_multi_rank_docstr
from collshim.oneflow.test_utils import test_util as util
from collshim.world import local_worlds, use
from tests.adapters.conftest import Refused, Run, each_of


def own() -> Any:
    """Return rank r's tensor, [1, 2] times r + 1."""
    return flow.tensor([1.0, 2.0]) * (flow.env.get_rank() + 1)


CALLS: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "local_all_reduce": (lambda x: flow._C.local_all_reduce(x), [[3.0, 6.0]] * 2),
    "local_reduce": (lambda x: flow._C.local_reduce(x, dst=1, inplace=False), [[1.0, 2.0], [3.0, 6.0]]),
    "comm_broadcast": (lambda x: flow._C.comm_broadcast(x, inplace=False), [[1.0, 2.0]] * 2),
    "comm_broadcast from 1": (lambda x: flow._C.comm_broadcast(x, src_rank=1, inplace=False), [[2.0, 4.0]] * 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_returns_a_new_tensor(run: Run, name: str) -> None:
    def rank() -> Any:
        x = own()
        result = CALLS[name][0](x)
        assert x.tolist() == own().tolist()
        return result.tolist()

    assert run(rank, 2) == CALLS[name][1]


@pytest.mark.parametrize("name", ["local_all_reduce", "local_reduce", "comm_broadcast"])
def test_inplace_returns_the_same_tensor(run: Run, name: str) -> None:
    def rank() -> Any:
        x = own()
        assert getattr(flow._C, name)(x, inplace=True) is x
        return x.tolist()

    assert run(rank, 2)[0] == ([3.0, 6.0] if name != "comm_broadcast" else [1.0, 2.0])


@each_of(2, gives=[([1.0, 2.0], [3.0, 6.0]), ([3.0, 6.0], [3.0, 6.0])])
def test_reduce_and_broadcast_write_by_default() -> Any:
    x = flow.nn.Parameter(own())
    assert flow._C.local_reduce(x, dst=1) is x
    reduced = x.tolist()
    assert flow._C.comm_broadcast(x, src_rank=1) is x
    return reduced, x.tolist()


@pytest.mark.parametrize("inplace", [False, True])
def test_list_of_tensors_is_broadcast_as_a_tuple(run: Run, inplace: bool) -> None:
    def rank() -> Any:
        x = own()
        results = flow._C.comm_broadcast([x, x.to(flow.int64)], src_rank=1, inplace=inplace)
        assert isinstance(results, tuple)
        return [result.tolist() for result in results], x.tolist() == [2.0, 4.0]

    assert run(rank, 2) == [([[2.0, 4.0], [2, 4]], inplace), ([[2.0, 4.0], [2, 4]], True)]


def test_select_top_n_gives_the_rest_zero_gradients() -> None:
    first, other = (flow.tensor([1.0], requires_grad=True) for _ in range(2))
    (selected,) = flow._C.select_top_n([first * 2, other], 1)
    selected.backward()
    assert (first.grad.tolist(), other.grad.tolist()) == ([2.0], [0.0])


DISTRIBUTED: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda x: flow.distributed.all_reduce(x, flow.distributed.ReduceOp.SUM),
    "reduce": lambda x: flow.distributed.reduce(x, 0, flow.distributed.ReduceOp.SUM),
    "broadcast": lambda x: flow.distributed.broadcast(x, 1),
    "barrier": lambda x: flow.distributed.barrier(),
}
WANTED = {"all_reduce": [[3.0, 6.0]] * 2, "reduce": [[3.0, 6.0], [2.0, 4.0]], "broadcast": [[2.0, 4.0]] * 2}


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_distributed_matches_comm_under_torch_names(run: Run, name: str) -> None:
    def rank() -> Any:
        x = own()
        assert DISTRIBUTED[name](x) is None
        return x.tolist()

    assert run(rank, 2) == WANTED.get(name, [[1.0, 2.0], [2.0, 4.0]])


def test_distributed_moves_lists_and_messages(run: Run) -> None:
    def rank() -> Any:
        dist, x = flow.distributed, own()
        entries: list[Any] = [None, None]
        dist.all_gather(entries, x)
        parts = [flow.zeros(1), flow.zeros(1)]
        dist.all_to_all(parts, [x[:1], x[1:]])
        total = flow.zeros(1)
        dist.reduce_scatter(total, [x[:1], x[1:]], dist.ReduceOp.SUM)
        message = own()
        dist.send(message, 1) if dist.get_rank() == 0 else dist.recv(message, 0)
        return [entry.tolist() for entry in entries], [part.item() for part in parts], total.item(), message.tolist()

    gathered = [[1.0, 2.0], [2.0, 4.0]]
    assert run(rank, 2) == [(gathered, [1.0, 2.0], 3.0, [1.0, 2.0]), (gathered, [2.0, 4.0], 6.0, [1.0, 2.0])]


@pytest.mark.parametrize("choice", [{"op": "max"}, {"op": "sum", "group": 1}, {"op": "sum", "async_op": True}])
def test_distributed_accepts_only_defaults(run: Run, refused: Refused, choice: dict[str, Any]) -> None:
    run(lambda: refused(AssertionError, lambda: flow.distributed.all_reduce(own(), **choice)), 2)


@pytest.mark.ranks(2)
def test_objects_are_broadcast() -> None:
    obj = {"rank": flow.env.get_rank()}
    broadcast = check_point_v2._broadcast_py_object
    assert (broadcast(obj), broadcast(obj if flow.env.get_rank() else None, src=1)) == ({"rank": 0}, {"rank": 1})


STATE = {"model": OrderedDict(weight=[1.0, 2.0]), "steps": [3], "name": "run"}


def tensors(value: Any) -> Any:
    """Return ``STATE`` with tensors in place of its lists of floats."""
    if isinstance(value, dict):
        return type(value)((key, tensors(entry)) for key, entry in value.items())
    return flow.tensor(value, requires_grad=True) if isinstance(value, list) and value == [1.0, 2.0] else value


def lists(value: Any) -> Any:
    if isinstance(value, dict):
        return type(value)((key, lists(entry)) for key, entry in value.items())
    if isinstance(value, torch.Tensor):
        assert type(value) is flow.Tensor
        return value.tolist()
    return value


def test_saved_object_can_be_loaded(tmp_path: Path) -> None:
    flow.save(tensors(STATE), tmp_path / "folder" / "state")
    assert lists(flow.load(str(tmp_path / "folder" / "state"))) == STATE


def test_module_is_loaded_if_any_object_is_allowed(tmp_path: Path) -> None:
    layer = flow.nn.Linear(2, 1)
    flow.save(layer, tmp_path / "layer")
    loaded = flow.load(tmp_path / "layer")
    assert type(loaded) is flow.nn.Linear
    assert loaded.weight.tolist() == layer.weight.tolist()
    with collshim.options(objects="safe"), pytest.raises(pickle.UnpicklingError):
        flow.load(tmp_path / "layer")


def test_torch_can_read_saved_files(tmp_path: Path) -> None:
    flow.save({"weight": flow.ones(2)}, tmp_path / "state")
    assert type(torch.load(tmp_path / "state", weights_only=True)["weight"]) is torch.Tensor


@pytest.mark.ranks(2)
def test_one_rank_writes_and_one_reads(tmp_path: Path) -> None:
    here = flow.env.get_rank()
    split = own().to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    flow.save(split, tmp_path / f"from {here}", global_dst_rank=1)
    flow.comm.barrier()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["from 1"]
    loaded = flow.load(tmp_path / ("from 1" if here == 1 else "nowhere"), global_src_rank=1)
    assert (loaded.placement, loaded.sbp) == (flow.placement("cpu", [1]), (flow.sbp.broadcast,))
    assert loaded.to_global(split.placement, split.sbp).numpy().tolist() == [1.0, 2.0, 2.0, 4.0]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("rank", [None, 0])
def test_save_refuses_tensors_of_the_wrong_kind(tmp_path: Path, rank: int | None) -> None:
    tensor = own() if rank == 0 else own().to_global(flow.placement("cpu", [0, 1]), flow.sbp.broadcast)
    with pytest.raises(AssertionError, match="save: a tensor is"):
        flow.save({"a": [tensor]}, tmp_path / "file", global_dst_rank=rank)


@pytest.mark.parametrize(("rank", "kind"), [(2, RuntimeError), (-1, RuntimeError), ("0", AssertionError)])
@pytest.mark.ranks(2)
def test_save_refuses_what_is_no_rank(tmp_path: Path, rank: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="should be an int from 0 to 1"):
        flow.save(1, tmp_path / "file", global_dst_rank=rank)


def test_oneflow_directory_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="is a directory, OneFlow's own format, should be a file"):
        flow.load(tmp_path)


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ({"shuffle": False}, [[0, 2, 4, 6], [1, 3, 5, 0]]),
        ({"shuffle": False, "drop_last": True}, [[0, 2, 4], [1, 3, 5]]),
        ({"shuffle": False, "num_replicas": 4, "rank": 3}, [[3, 0]] * 2),
    ],
)
def test_sampler_gives_each_rank_its_share(run: Run, choice: dict[str, Any], wanted: Any) -> None:
    sampler = flow.utils.data.distributed.DistributedSampler
    assert run(lambda: list(sampler(range(7), **choice)), 2) == wanted


def test_shuffled_sampler_has_every_index(run: Run) -> None:
    sampler = flow.utils.data.DistributedSampler
    shares = run(lambda: list(sampler(range(8), seed=3)), 2)
    assert sorted(shares[0] + shares[1]) == list(range(8))
    assert shares[0] + shares[1] != list(range(8))


SKIPS = {"1n1d": (1, 1), "1n2d": (1, 2), "1n4d": (1, 4), "2n1d": (2, 1), "2n2d": (2, 2), "2n4d": (2, 4)}


def skipped(name: str) -> bool:
    skip: Any = getattr(flow_unittest, f"skip_unless_{name}")()

    class Case(flow_unittest.TestCase):
        @skip  # type: ignore[untyped-decorator]
        def test(self) -> None:
            """Do nothing."""

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful()
    return bool(result.skipped)


@pytest.mark.parametrize("there", SKIPS.values())
def test_test_case_runs_on_declared_machines_and_devices(
    monkeypatch: pytest.MonkeyPatch, there: tuple[int, int]
) -> None:
    monkeypatch.setenv("ONEFLOW_TEST_NODE_NUM", str(there[0]))
    monkeypatch.setenv("ONEFLOW_TEST_DEVICE_NUM", str(there[1]))
    assert [name for name in SKIPS if not skipped(name)] == [name for name, wanted in SKIPS.items() if wanted == there]


def test_world_size_counts_without_the_variables(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONEFLOW_TEST_NODE_NUM", "ONEFLOW_TEST_NODE_LIST", "ONEFLOW_TEST_DEVICE_NUM"):
        monkeypatch.delenv(name, raising=False)
    assert run(lambda: [name for name in SKIPS if not skipped(name)], 2) == [["1n2d"]] * 2
    for name, value in {"RANK": "0", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    assert [name for name in SKIPS if not skipped(name)] == ["2n4d"]


def test_argument_combinations_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: Any = OrderedDict(shape=[(2,), (3,)], device=["cpu", "cuda"])
    assert list(util.GenArgList(arguments)) == [((2,), "cpu"), ((2,), "cuda"), ((3,), "cpu"), ((3,), "cuda")]
    monkeypatch.setenv("ONEFLOW_TEST_CPU_ONLY", "1")
    assert util.GenArgDict(arguments) == [{"shape": (2,), "device": "cpu"}, {"shape": (3,), "device": "cpu"}]
    wrong: Any = OrderedDict(shape=(2,))
    with pytest.raises(AssertionError, match="the values of shape are not a list"):
        util.GenArgList(wrong)


def test_internals_used_by_programs_exist() -> None:
    internal = flow._oneflow_internal
    assert (internal.GetRank(), internal.GetWorldSize(), internal.GetLocalRank()) == (0, 1, 0)
    assert internal.max_alignment_size() == 512
    internal.eager.ClusterSync()
    internal.eager.Sync()
    assert internal.cpu_broadcast(b"bytes", 0) == b"bytes"
    assert isinstance(flow.ones(1), internal.Tensor)


EXAMPLES = """
'''
>>> import collshim.oneflow as flow
>>> flow.env.get_rank()  # doctest: +ONLY_CHECK_RANK_0
0
>>> flow.env.get_rank()  # doctest: +ONLY_CHECK_RANK_1
1
>>> flow.env.get_world_size()
%s
'''
"""


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(("size", "wanted"), [(2, None), (3, doctest.DocTestFailure)])
def test_doctests_are_compared_on_the_named_rank(rank: int, size: int, wanted: Any) -> None:
    module = types.ModuleType("examples", (EXAMPLES % size).strip().strip("'"))
    expected = contextlib.nullcontext() if wanted is None else pytest.raises(wanted)
    with local_worlds(2) as worlds, use(worlds[rank]), expected:
        check_multi_rank_docstr(module)


def test_functions_are_in_comm_ops_too() -> None:
    names = set(flow.comm.__all__) - {"send", "recv"}
    assert {name: getattr(flow.comm.comm_ops, name) for name in names} == {
        name: getattr(flow.comm, name) for name in names
    }
    assert set(flow.comm.comm_ops.__all__) == names
