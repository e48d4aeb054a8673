"""comm_func: send, recv, isend, irecv, P2POp, batch_isend_irecv."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from collshim.mindspore.communication import comm_func, create_group, get_group_size, get_rank

if TYPE_CHECKING:
    from tests.adapters.mindspore.conftest import Refused, Run

comm: Any = comm_func  # what types forbid is tried too


def test_recv_gives_a_new_tensor_like_the_one_it_is_shown(run: Run) -> None:
    def rank() -> Any:
        if get_rank() == 0:
            return comm.send(torch.tensor([1.0, 2.0]), 1)
        shown = torch.zeros(2)
        return comm.recv(shown, 0).tolist(), shown.tolist()

    assert run(rank, 2) == [None, ([1.0, 2.0], [0.0, 0.0])]


def test_recv_gives_the_kind_that_it_is_shown(run: Run) -> None:
    def rank() -> Any:
        if get_rank() == 0:
            return comm.send(torch.tensor([1, 2]), 1)
        received = comm.recv(np.zeros(2, dtype=np.int64), 0)
        return type(received), received.tolist()

    assert run(rank, 2)[1] == (np.ndarray, [1, 2])


def test_isend_and_irecv_return_handles(run: Run) -> None:
    def rank() -> Any:
        if get_rank() == 0:
            handle = comm.isend(torch.tensor([1.0, 2.0]), 1)
            assert isinstance(handle, comm_func.CommHandle)
            return handle.wait()
        output, handle = comm.irecv(torch.zeros(2), 0)
        assert isinstance(handle, comm_func.CommHandle)
        handle.wait()
        return output.tolist()

    assert run(rank, 2) == [None, [1.0, 2.0]]


def test_a_tag_chooses_its_message(run: Run) -> None:
    def rank() -> Any:
        if get_rank() == 0:
            handles = [comm.isend(torch.tensor([tag]), 1, tag=tag) for tag in (1, 2)]
            return [handle.wait() for handle in handles]
        return [int(comm.recv(torch.tensor([0]), 0, tag=tag)) for tag in (2, 1)]

    assert run(rank, 2)[1] == [2, 1]


def test_peers_are_global_ranks_in_a_subgroup_too(run: Run) -> None:
    def rank() -> Any:
        here = get_rank()
        if here not in (1, 3):
            return None
        create_group("odd", [3, 1])
        if here == 1:
            return comm.send(torch.tensor([10.0, 11.0]), 3, "odd")
        return comm.recv(torch.zeros(2), 1, "odd").tolist()

    assert run(rank, 4) == [None, None, None, [10.0, 11.0]]


def test_a_peer_outside_the_group_is_a_key_error(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        x = torch.zeros(2)
        return [
            refused(KeyError, lambda: comm.send(x, 7)),
            refused(KeyError, lambda: comm.recv(x, 7)),
            refused(KeyError, lambda: comm.isend(x, -1)),
            refused(KeyError, lambda: comm.irecv(x, 7)),
            refused(KeyError, lambda: comm.batch_isend_irecv([comm.P2POp("isend", x, 7)])),
        ]

    wanted = "the argument 'world_rank_id' is not found in GROUP_RANKS, 'group' : mccl_world_group"
    assert all(wanted in text for texts in run(rank, 2) for text in texts)


@pytest.mark.parametrize(("function", "what"), [("send", "dst"), ("isend", "dst"), ("recv", "src"), ("irecv", "src")])
def test_other_types_are_refused(run: Run, refused: Refused, function: str, what: str) -> None:
    def rank() -> tuple[str, str]:
        called = getattr(comm, function)
        no_tensor = refused(TypeError, lambda: called(1))
        return no_tensor, refused(TypeError, lambda: called(torch.zeros(2), "a"))

    for no_tensor, no_rank in run(rank, 2):
        assert f"For {function}, the input tensor must be tensor" in no_tensor
        assert f"For {function}, the {what} must be int" in no_rank


@pytest.mark.parametrize("as_functions", [False, True])
def test_a_ring_by_batch_isend_irecv(run: Run, as_functions: bool) -> None:
    def rank() -> Any:
        here, size = get_rank(), get_group_size()
        isend, irecv = (comm.isend, comm.irecv) if as_functions else ("isend", "irecv")
        send_op = comm.P2POp(isend, torch.tensor(here + 1.0), (here + 1) % size)
        recv_op = comm.P2POp(irecv, torch.tensor(0.0), (here - 1) % size)
        outputs = comm.batch_isend_irecv([send_op, recv_op])
        assert type(outputs) is tuple
        return tuple(outputs[0].shape), outputs[0].dtype, outputs[1].item()

    assert run(rank, 4) == [((), torch.float32, float((here - 1) % 4 + 1)) for here in range(4)]


@pytest.mark.parametrize(("dtype", "kind"), [(torch.int32, torch.Tensor), (np.int32, np.ndarray)])
def test_a_receive_may_be_described_by_shape_and_dtype(run: Run, dtype: Any, kind: type) -> None:
    def rank() -> Any:
        if get_rank() == 0:
            return comm.batch_isend_irecv([comm.P2POp("isend", torch.tensor([[1, 2]], dtype=torch.int32), 1)])
        (received,) = comm.batch_isend_irecv([comm.P2POp("irecv", (1, 2), 0, recv_dtype=dtype)])
        return isinstance(received, kind), received.tolist()

    assert run(rank, 2)[1] == (True, [[1, 2]])


def test_a_batch_in_a_subgroup(run: Run) -> None:
    def rank() -> Any:
        here = get_rank()
        if here == 0:
            return None
        create_group("two", [2, 1])
        peer = 3 - here
        send_op = comm.P2POp("isend", torch.tensor([here]), peer, "two")
        recv_op = comm.P2POp("irecv", torch.tensor([0]), peer, "two")
        return int(comm.batch_isend_irecv([recv_op, send_op])[0])

    assert run(rank, 3) == [None, 2, 1]


def test_p2pop_keeps_what_it_is_given() -> None:
    tensor = torch.zeros(2)
    operation = comm.P2POp("irecv", tensor, 1, "g", 0, torch.float32)
    assert (operation.op, operation.tensor, operation.peer) == ("irecv", tensor, 1)
    assert (operation.group, operation.tag, operation.recv_dtype) == ("g", 0, torch.float32)


@pytest.mark.parametrize(
    ("arguments", "keywords", "theirs", "text"),
    [
        ((1, torch.zeros(1), 0), {}, TypeError, "op must be type of string or function, but got type of <class 'int'>"),
        (
            ("foo", torch.zeros(1), 0),
            {},
            ValueError,
            "Expected ``op`` to be of type ``isend`` or `irecv``, but got foo",
        ),
        (("isend", 1, 0), {}, TypeError, "Expected ``tensor`` to be type of tuple or Tensor, but got <class 'int'>."),
        (("isend", torch.zeros(1), "a"), {}, TypeError, "peer must be type of int, but got type of <class 'str'>"),
        (("isend", torch.zeros(1), 0), {"tag": 1}, NotImplementedError, "``tag`` not support yet."),
    ],
)
def test_p2pop_refuses(
    refused: Refused, arguments: Any, keywords: dict[str, int], theirs: type[Exception], text: str
) -> None:
    assert text in refused(theirs, lambda: comm.P2POp(*arguments, **keywords))


def test_batch_isend_irecv_refuses(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        batch, shape_alone = comm.batch_isend_irecv, comm.P2POp("irecv", (1,), 0)
        return [
            refused(TypeError, lambda: batch(())),
            refused(TypeError, lambda: batch([])),
            refused(AttributeError, lambda: batch([1])),
            refused(ValueError, lambda: batch([shape_alone])),
            refused(TypeError, lambda: batch([comm.P2POp("isend", (1,), 0)])),
        ]

    for texts in run(rank, 2):
        assert "p2p_op_list must be type of list, but got type of ()." in texts[0]
        assert "p2p_op_list can not be empty list." in texts[1]
        assert "'int' object has no attribute 'group'" in texts[2]
        assert "'recv_dtype' of 0th P2POp in p2p_op_list is None but op_types is'irecv' and" in texts[3]


def test_a_handle_made_by_hand_waits_for_nothing() -> None:
    assert comm.CommHandle().wait() is None


def test_a_message_carries_no_gradient(run: Run) -> None:
    def rank() -> Any:
        x = torch.ones(2, requires_grad=True)
        if get_rank() == 0:
            return comm.send(x * 3, 1)
        received = comm.recv(torch.zeros(2), 0)
        (received * x).sum().backward()
        assert x.grad is not None
        return received.requires_grad, x.grad.tolist()

    assert run(rank, 2) == [None, (False, [3.0, 3.0])]
