"""Behaviour without bindings in the suite: messages, unequal parts, in place or not, reading without a wait."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np

import collshim
import collshim.mindspore as ms
from collshim.mindspore import Tensor, ops
from collshim.mindspore.communication import GlobalComm, get_rank
from collshim.mindspore.mint import distributed as dist
from collshim.mindspore.ops import communication
from collshim.world import use
from tests.adapters.conftest import Refused, Run, each_of


def test_primitive_made_before_init_works_after() -> None:
    operation = ops.AllReduce(ops.ReduceOp.MAX, GlobalComm.WORLD_COMM_GROUP)

    def reduced() -> Any:
        gather = ops.AllGather()
        ms.communication.init("mccl")
        own = Tensor(float(get_rank()))
        return operation(own).item(), gather(own).tolist()

    assert collshim.launch(reduced, 2, timeout=200) == [(1.0, [0.0, 1.0])] * 2


@each_of(2, gives=[[1.0, 2.0], [1.0, 2.0]])
def test_send_and_receive() -> Any:
    if get_rank() == 0:
        return ops.Send(3, 1)(Tensor([1.0, 2.0])).tolist()
    return ops.Receive(3, 0, [2], ms.float32)().tolist()


@each_of(2, gives=[[0, 1, 2, 0, 1, 2, 3]] * 2)
def test_all_gather_v_joins_unequal_parts() -> Any:
    return ops.AllGatherV()(Tensor([*range(get_rank() + 3)]), [3, 4]).tolist()


def test_reduce_scatter_v_cuts_unequal_parts(run: Run) -> None:
    assert run(lambda: ops.ReduceScatterV()(Tensor([0, 1, 2.0]), [2, 1]).tolist(), 2) == [[0.0, 2.0], [4.0]]


@each_of(2, gives=[[[0.0, 3.0, 4.0]] * 2, [[1.0, 2.0, 5.0]] * 2])
def test_all_to_all_v_takes_counts_of_all_ranks() -> Any:
    own = Tensor([0, 1, 2.0]) + 3 * get_rank()
    counts = [[1, 2], [2, 1]][get_rank()]
    both = ops.AlltoAllV()(own, counts, counts), ops.AlltoAllVC()(own, Tensor([[1, 2], [2, 1]]))
    return [one.tolist() for one in both]


@each_of(2, gives=[2.0, 1.0])
def test_batch_returns_a_tensor_per_message() -> Any:
    other = 1 - get_rank()
    batch = ops.BatchISendIRecv(("isend", "irecv"), [other, other], [()], (ms.float32,))
    return batch((Tensor(get_rank() + 1.0),))[1].item()


@each_of(2, gives=[[1.0, 1.0, 2.0], [1.0, 2.0, 2.0]])
def test_neighbours_exchange_their_borders() -> Any:
    below = get_rank() == 0
    ranks = [-1] * 8
    ranks[4 if below else 0] = 1 - get_rank()
    lens = [0, 1, 0, 0] if below else [1, 0, 0, 0]
    image = Tensor(np.full((1, 1, 2, 2), get_rank() + 1, np.float32))
    return ops.NeighborExchangeV2(ranks, lens, ranks, lens, "NCHW")(image)[0, 0, :, 0].tolist()


@each_of(2, gives=[[2.0, 4.0], [1.0, 2.0]])
def test_neighbours_exchange_tensors() -> Any:
    other = [1 - get_rank()]
    operation = ops.NeighborExchange(other, other, [(2,)], [(2,)], ms.float32)
    return operation((Tensor([1.0, 2.0]) * (get_rank() + 1),))[0].tolist()


@each_of(2, gives=["2.0", "1.0"])
def test_received_tensor_is_read_without_a_wait() -> Any:
    other, came = 1 - get_rank(), Tensor(0.0)
    sends = dist.P2POp("isend", Tensor(get_rank() + 1.0), other)
    handles = dist.batch_isend_irecv([sends, dist.P2POp(dist.irecv, came, other)])
    text = str(came)
    handles[0].wait()
    return text


@each_of(2, gives=[([1.0], [2.0], None, None, [2.0])] * 2)
def test_functional_form_returns_results() -> Any:
    communication.set_comm_ops_inplace(False, ["all_reduce"])
    own = Tensor([1.0])
    returned: Any = communication.all_reduce(own)
    communication.set_comm_ops_inplace(True)
    before = own.tolist(), returned[0].tolist(), returned[1]
    return (*before, communication.all_reduce(own), own.tolist())


@each_of(2, gives=[[[2.0]]] * 2)
def test_choice_of_form_holds_in_other_threads() -> Any:
    communication.set_comm_ops_inplace(False, ["all_reduce"])
    found, here = list[Any](), collshim.current()

    def elsewhere() -> None:
        with use(here):
            returned: Any = communication.all_reduce(Tensor([1.0]))
            found.append(returned[0].tolist())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(20)
    return found


def test_function_without_returning_form_is_refused(run: Run, refused: Refused) -> None:
    def functional() -> str:
        communication.set_comm_ops_inplace(False)
        text = refused(ValueError, lambda: communication.broadcast(Tensor([1.0]), 0))
        communication.set_comm_ops_inplace(True)
        return text

    assert "Non-inplace mode" in run(functional, 1)[0]


def test_group_is_called_by_the_recorded_name(run: Run) -> None:
    def grouped() -> Any:
        group = dist.new_group([1, 0], backend="mccl")
        return group, dist.get_rank(group), dist.new_group([0])[:6]

    name = "mccl_2_30879612a0f2eb969a8b57e5bc857347e88fdf07"
    assert run(grouped, 2) == [(name, 0, "hccl_1"), (name, 1, "")]


def test_unknown_reduction_is_refused_at_the_call(run: Run, refused: Refused) -> None:
    def called() -> str:
        return refused(ValueError, lambda: ops.AllReduce("max_world_group")(Tensor([1.0])))

    assert "the 'op' must be one of sum, max, min, prod, avg, but got 'max_world_group'" in run(called, 1)[0]


def test_primitive_attributes_are_kept() -> None:
    operation: Any = ops.AllReduce().add_prim_attr("fusion", 1)
    assert (operation.fusion, operation.get_attr_dict()["fusion"]) == (1, 1)
    assert "fusion" not in operation.del_prim_attr("fusion").attrs


@each_of(2, gives=[(2, 2, 1)] * 2)
def test_primitives_know_the_size_of_their_group() -> Any:
    alone = f"alone{get_rank()}"
    ms.communication.create_group(alone, [get_rank()])
    return ops.AllGather().rank_size, ops.ReduceScatter().rank_size, ops.AllGather(alone).rank_size


@each_of(2, gives=[True, True])
def test_broadcast_takes_only_a_tuple(refused: Refused) -> bool:
    broadcast: Any = ops.Broadcast(0)
    given = (Tensor([1.0]), [Tensor([1.0])])
    texts = [refused(TypeError, partial(broadcast, value)) for value in given]
    return all("the input[0] should be a Tuple of tensors, but got" in text for text in texts)
