"""Messages of comm_func: tags, and batches of operations that P2POp describes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from collshim.mindspore.communication import comm_func, get_group_size, get_rank
from tests.adapters.conftest import Run, each_of

comm: Any = comm_func  # calls that the types forbid are tested too


def test_tag_selects_its_message(run: Run) -> None:
    def rank() -> Any:
        if get_rank() == 0:
            handles = [comm.isend(torch.tensor([tag]), 1, tag=tag) for tag in (1, 2)]
            return [handle.wait() for handle in handles]
        return [int(comm.recv(torch.tensor([0]), 0, tag=tag)) for tag in (2, 1)]

    assert run(rank, 2)[1] == [2, 1]


@each_of(4, gives=[((), torch.float32, float((here - 1) % 4 + 1)) for here in range(4)])
def test_batch_isend_irecv_ring_with_functions() -> Any:
    here, size = get_rank(), get_group_size()
    send_op = comm.P2POp(comm.isend, torch.tensor(here + 1.0), (here + 1) % size)
    recv_op = comm.P2POp(comm.irecv, torch.tensor(0.0), (here - 1) % size)
    outputs = comm.batch_isend_irecv([send_op, recv_op])
    assert type(outputs) is tuple
    return tuple(outputs[0].shape), outputs[0].dtype, outputs[1].item()


@pytest.mark.parametrize(("dtype", "kind"), [(torch.int32, torch.Tensor), (np.int32, np.ndarray)])
def test_receive_can_be_described_by_shape_and_dtype(run: Run, dtype: Any, kind: type) -> None:
    def rank() -> Any:
        if get_rank() == 0:
            return comm.batch_isend_irecv([comm.P2POp("isend", torch.tensor([[1, 2]], dtype=torch.int32), 1)])
        (received,) = comm.batch_isend_irecv([comm.P2POp("irecv", (1, 2), 0, recv_dtype=dtype)])
        return isinstance(received, kind), received.tolist()

    assert run(rank, 2)[1] == (True, [[1, 2]])


def test_p2pop_keeps_its_arguments() -> None:
    tensor = torch.zeros(2)
    operation = comm.P2POp("irecv", tensor, 1, "g", 0, torch.float32)
    assert (operation.op, operation.tensor, operation.peer) == ("irecv", tensor, 1)
    assert (operation.group, operation.tag, operation.recv_dtype) == ("g", 0, torch.float32)


def test_handle_made_by_hand_does_not_wait() -> None:
    assert comm.CommHandle().wait() is None


@each_of(2, gives=[None, (False, [3.0, 3.0])])
def test_message_carries_no_gradient() -> Any:
    x = torch.ones(2, requires_grad=True)
    if get_rank() == 0:
        return comm.send(x * 3, 1)
    received = comm.recv(torch.zeros(2), 0)
    (received * x).sum().backward()
    assert x.grad is not None
    return received.requires_grad, x.grad.tolist()


@each_of(2, gives=[[(1, 2), (1, 2), (2, 3)]] * 2)
def test_shape_can_be_a_tensor() -> Any:
    outputs, _ = comm.all_to_all_with_output_shape([torch.zeros(1, 2), (1, 2)], [torch.ones(1, 2)] * 2)
    whole, _ = comm.all_to_all_single_with_output_shape(torch.zeros(2, 3), torch.ones(2, 3))
    return [tuple(output.shape) for output in (*outputs, whole)]
