"""What programs with collectives use beside them: functions, streams, hooks, dynamic shapes, helpers, stores."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.mindspore as ms
import collshim.mindspore.mint.distributed as dist
from collshim.conformance.recorder.jobs import free_port
from collshim.mindspore import mint, nn, ops
from collshim.mindspore.common.api import _cell_graph_executor
from collshim.mindspore.communication import _comm_helper, comm_func, init
from collshim.mindspore.ops.operations import _inner_ops
from collshim.mindspore.parallel._auto_parallel_context import auto_parallel_context
from collshim.mindspore.parallel._utils import _get_device_num, _get_global_rank

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.unranked
def test_functions_take_and_return_tensors() -> None:
    x = ms.Tensor(X)
    made: Any = mint
    results = [
        made.cat([x, x], 0),
        made.ones((2, 3)),
        made.nn.functional.relu(x),
        ops.Stack()([x, x]),
        ops.AddN()((x, x)),
    ]
    assert all(type(result) is ms.Tensor for result in results)
    assert [result.shape for result in results] == [(4, 3), (2, 3), (2, 3), (2, 2, 3), (2, 3)]


@pytest.mark.unranked
def test_pieces_and_places() -> None:
    x: Any = ms.Tensor(X)
    assert ops.strided_slice(x, (0, 0), (2, 3), (1, 2)).asnumpy().tolist() == [[0, 2], [3, 5]]
    assert ops.StridedSlice(shrink_axis_mask=1)(x, (1, 0), (2, 2), (1, 1)).asnumpy().tolist() == [3, 4]
    assert ops.slice(x, (0, 1), (-1, 2)).asnumpy().tolist() == [[1, 2], [4, 5]]
    assert ops.gather(x, ms.Tensor([[1, 0]]), 1).shape == (2, 1, 2)
    assert ops.gather_nd(x, ms.Tensor([[1, 2]])).asnumpy().tolist() == [5]
    assert [part.shape for part in ops.Split(1, 3)(x)] == [(2, 1)] * 3
    assert ops.ReduceProd(keep_dims=True)(x, 1).asnumpy().tolist() == [[0], [60]]


@pytest.mark.unranked
def test_methods_have_mindspores_meaning() -> None:
    x: Any = ms.Tensor(X)
    assert (x.max(axis=0).asnumpy().tolist(), x.min(axis=(0, 1)).item()) == ([3, 4, 5], 0)
    assert [part.asnumpy().tolist() for part in x.max(0)] == [[3, 4, 5], [1, 1, 1]]
    assert [part.asnumpy().tolist() for part in x.max(axis=1, return_indices=True)] == [[2, 5], [2, 2]]
    assert (x.std(axis=0).asnumpy().tolist(), x.var(0).asnumpy().tolist()) == ([1.5] * 3, [2.25] * 3)
    assert x.equal(x).asnumpy().tolist() == [[True] * 3] * 2
    assert (x.fill(3).asnumpy().tolist(), x.asnumpy().tolist()) == ([[3] * 3] * 2, X.tolist())
    assert x.gather(ms.Tensor([0]), 1).asnumpy().tolist() == [[0], [3]]
    assert x.gather(0, ms.Tensor([[0, 1, 0]])).asnumpy().tolist() == [[0, 4, 2]]
    assert [part.dtype for part in (*x.topk(1), *x.sort())] == [ms.float32, ms.int32] * 2
    assert ms.Tensor.from_numpy(X).set_const_arg().has_init is False


@pytest.mark.unranked
def test_tensor_of_a_shape_alone_tells_unknown_lengths() -> None:
    assert ms.Tensor(shape=[None, 3], dtype=ms.float32).shape == (-1, 3)
    with pytest.raises(ValueError, match="input_data and init"):
        ms.Tensor(shape=[None, 3])


@pytest.mark.unranked
def test_programs_run_line_by_line() -> None:
    class Twice(nn.Cell):
        def construct(self, x: Any) -> Any:
            return _inner_ops.ConvertToDynamic()(x) * 2

    cell = Twice()
    cell.set_inputs(ms.Tensor(shape=[None], dtype=ms.float32))
    assert _cell_graph_executor.compile(cell, ms.Tensor(X)) == ("train", True)
    with ms.runtime.StreamCtx(ms.runtime.Stream()) as context:
        assert ms.runtime.current_stream() is context.stream is not ms.runtime.default_stream()
        event = ms.runtime.current_stream().record_event()
        assert cell(ms.Tensor(X)).asnumpy()[1, 2] == 10
    assert event.query()
    assert ms.runtime.current_stream() is ms.runtime.default_stream()


@pytest.mark.unranked
def test_primitive_registers_its_arguments() -> None:
    class Shifted(ops.PrimitiveWithInfer):
        @ops.prim_attr_register
        def __init__(self, by: int, times: int = 2) -> None:
            """Take two numbers."""

    assert Shifted(1).get_attr_dict() == {"by": 1, "times": 2}
    assert ops.constexpr(len) is len


@pytest.mark.unranked
def test_hooks_see_and_change_values() -> None:
    net, seen = nn.Dense(3, 1, weight_init="ones", has_bias=False), list[str]()
    net.register_forward_pre_hook(lambda cell, inputs: seen.append("before"))
    ahead = net.register_forward_hook(lambda cell, inputs, output: output * 2)
    net.register_backward_hook(lambda cell, given, came: seen.append(f"{came[0].shape} {given[0].shape}"))
    gradient = ms.grad(lambda x: net(x).sum())(ms.Tensor(X))
    assert gradient.asnumpy().tolist() == [[2.0] * 3] * 2
    assert seen == ["before", "(2, 1) (2, 3)"]
    ahead.remove()
    assert net(ms.Tensor(X)).asnumpy().tolist() == [[3.0], [12.0]]
    with pytest.raises(TypeError, match="Expected a callable hook function, but got int"):
        net.register_forward_hook(1)  # type: ignore[arg-type]


@pytest.mark.unranked
def test_gradient_is_changed_on_its_way() -> None:
    doubled = ops.InsertGradientOf(lambda gradient: gradient * 2)
    assert ms.grad(lambda x: doubled(x).sum())(ms.Tensor([1.0])).asnumpy().tolist() == [2.0]


@pytest.mark.unranked
def test_numbers_of_fusion_are_kept() -> None:
    net = nn.Dense(3, 1).set_comm_fusion(3)
    assert net.weight.comm_fusion == 3
    for value, error in ((-1, ValueError), ("1", TypeError)):
        with pytest.raises(error, match="input value must be int"):
            net.weight.comm_fusion = value


@pytest.mark.unranked
def test_settings_of_parallelism_have_methods() -> None:
    settings = auto_parallel_context()
    settings.set_device_num(8)
    assert (settings.get_device_num(), settings.get_device_num_is_set()) == (8, True)
    settings.reset()
    assert (settings.get_device_num(), settings.get_device_num_is_set()) == (1, False)
    with pytest.raises(ValueError, match="not recognized"):
        settings.get_nothing()


def test_helpers_know_the_ranks() -> None:
    def rank() -> list[int]:
        init()
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        world = _comm_helper.GlobalComm.WORLD_COMM_GROUP
        return [_comm_helper._get_rank_helper(world), _get_device_num(), _get_global_rank()]

    assert collshim.launch(rank, 2) == [[0, 2, 0], [1, 2, 1]]


def test_batches_are_normalized_over_all_ranks() -> None:
    whole = np.random.default_rng(0).normal(size=(4, 3, 2, 2)).astype(np.float32)

    def rank() -> Any:
        init()
        cell = nn.SyncBatchNorm(3).set_train()
        own = ms.Tensor(whole.reshape(2, 2, 3, 2, 2)[ms.communication.get_rank()])
        gradient = ms.grad(lambda x: (cell(x) ** 3).sum())(own)
        return cell(own).asnumpy(), gradient.asnumpy(), cell.moving_mean.asnumpy()

    alone = nn.BatchNorm2d(3).set_train()
    gradient = ms.grad(lambda x: (alone(x) ** 3).sum())(ms.Tensor(whole))
    expected = alone(ms.Tensor(whole)).asnumpy(), gradient.asnumpy(), alone.moving_mean.asnumpy()
    results = collshim.launch(rank, 2)
    for place in range(2):
        np.testing.assert_allclose(np.concatenate([one[place] for one in results]), expected[place], atol=1e-4)
    np.testing.assert_allclose(results[0][2], expected[2], atol=1e-5)


def test_groups_of_normalization_are_checked() -> None:
    def rank() -> list[str]:
        init()
        own = nn.SyncBatchNorm(3, process_groups=[[0], [1]])
        with pytest.raises(ValueError, match="different ones from 0 to 1"):
            nn.SyncBatchNorm(3, process_groups=[[0, 0]])
        with pytest.raises(TypeError, match="process_groups"):
            nn.SyncBatchNorm(3, process_groups=3)  # type: ignore[arg-type]
        return [own.group_name, nn.SyncBatchNorm(3).group_name]

    assert collshim.launch(rank, 2) == [["", "hccl_world_group"]] * 2


def test_message_in_an_unknown_group_is_a_key_error() -> None:
    def rank() -> None:
        init()
        other = 1 - ms.communication.get_rank()
        calls: list[Any] = [dist.send, dist.recv, dist.isend, dist.irecv, comm_func.send, comm_func.recv]
        for call in calls:
            with pytest.raises(KeyError, match="'group' is not found in GROUP_RANKS"):
                call(ms.Tensor(X), other, "unknown")
        with pytest.raises(ValueError, match="Invalid destination rank"):
            dist.send_object_list([1], 1 - other)

    collshim.launch(rank, 2)


def test_empty_list_of_objects_is_not_broadcast() -> None:
    def rank() -> None:
        init()
        with pytest.raises(TypeError, match=r"The object_list can not be empty\."):
            dist.broadcast_object_list([], 0)

    collshim.launch(rank, 2)


def test_mean_is_a_reduction_also_if_results_are_returned() -> None:
    def rank() -> Any:
        init()
        ops.communication.set_comm_ops_inplace(False, ["all_reduce"])
        returned: Any = ops.communication.all_reduce(ms.Tensor(X) * ms.communication.get_rank(), "avg")
        output, handle = returned
        assert handle is None
        return output.asnumpy().tolist()

    assert collshim.launch(rank, 2) == [(X / 2).tolist()] * 2


@pytest.mark.unranked
def test_neighbours_are_integers() -> None:
    with pytest.raises(TypeError, match="'rank_id in send_rank_ids' must be 'int'"):
        ops.NeighborExchangeV2(["0"] * 8, [0] * 4, [-1] * 8, [0] * 4, "NCHW")  # type: ignore[list-item]


def test_output_that_is_not_joined_is_refused() -> None:
    def rank() -> None:
        init()
        with pytest.raises(ValueError, match=r"output_tensor shape must be equal to \(4, 3\), but got \(2, 2, 3\)"):
            dist.all_gather_into_tensor(ms.Tensor(np.zeros((2, 2, 3), np.float32)), ms.Tensor(X))

    collshim.launch(rank, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"backend": "nccl"}, ValueError, "Only support hccl"),
        ({"init_method": "tcp://127.0.0.1:1"}, ValueError, "world_size must be a positive integer"),
        ({"init_method": "tcp://127.0.0.1:1", "world_size": 2}, ValueError, "rank must be a non-negative integer"),
        ({"store": 1}, TypeError, "parameter 'store'"),
        ({"timeout": 1}, TypeError, "parameter 'timeout'"),
    ],
)
@pytest.mark.unranked
def test_wrong_argument_of_init_is_refused(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dist.init_process_group(**arguments)


STORE = """
import datetime, os, sys
from mindspore.mint.distributed import TCPStore, all_gather_object, get_world_size, init_process_group

rank = int(os.environ.pop("RANK"))
for name in ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
    os.environ.pop(name, None)
store = TCPStore("127.0.0.1", int(sys.argv[1]), 2, rank == 0, datetime.timedelta(seconds=60))
init_process_group(store=store, world_size=2, rank=rank)
found = [None] * get_world_size()
all_gather_object(found, rank)
assert found == [0, 1], found
"""


@pytest.mark.unranked
def test_store_refuses_wrong_arguments() -> None:
    calls: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception]]] = [
        ((1, 2), {}, TypeError),
        (("localhost", 70000), {}, ValueError),
        (("localhost", 2), {"is_master": 1}, TypeError),
        (("localhost", 2), {"timeout": 1}, TypeError),
        (("localhost", 2), {"world_size": 0}, ValueError),
    ]
    for arguments, options, error in calls:
        with pytest.raises(error, match="For 'TCPStore', the argument"):
            dist.TCPStore(*arguments, **options)
    store = dist.TCPStore("127.0.0.1", 0, 1, True, datetime.timedelta(seconds=5), False)
    store.set("key", b"value")
    assert (store.get("key"), store.add("number", 2)) == (b"value", 2)
    for call in (lambda: store.get(1), lambda: store.set("key", 1), lambda: store.add("key", "1")):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="must be type of"):
            call()


@pytest.mark.processes
def test_ranks_meet_in_a_store(tmp_path: Any) -> None:
    script = tmp_path / "store.py"
    script.write_text(STORE)
    run = [sys.executable, "-m", "collshim", "run", "--as", "mindspore", "-n", "2", str(script), str(free_port())]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
