"""oneflow.comm: send, recv, barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import collshim
import collshim.oneflow as flow

if TYPE_CHECKING:
    from tests.adapters.oneflow.conftest import Refused, Run

comm: Any = flow.comm  # what types forbid is tried too


def first() -> bool:
    return flow.env.get_rank() == 0


@pytest.mark.parametrize(
    "sent",
    [
        torch.tensor([[1, 2, 3], [4, 5, 6]]),
        torch.tensor(3.5),
        torch.tensor([True, False, True]),
        torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64),
        torch.tensor([[1, 2, 3], [4, 5, 6]]).T,
    ],
)
def test_recv_takes_shape_and_dtype_from_the_sender(run: Run, sent: torch.Tensor) -> None:
    def rank() -> Any:
        return comm.send(sent, 1) if first() else comm.recv(0)

    returned, received = run(rank, 2)
    assert returned is None
    assert received.dtype is sent.dtype
    assert torch.equal(received, sent)


def test_recv_into_out_returns_out(run: Run) -> None:
    def rank() -> Any:
        if first():
            return comm.send(flow.tensor([1, 2]), 1)
        out = flow.zeros(2, dtype=flow.int64)
        return comm.recv(0, out=out) is out, out.tolist()

    assert run(rank, 2)[1] == (True, [1, 2])


def test_recv_into_a_numpy_array(run: Run) -> None:
    def rank() -> Any:
        if first():
            return comm.send(np.array([1, 2]), 1)
        out = np.zeros(2, dtype=np.int64)
        return comm.recv(0, out=out) is out, out.tolist()

    assert run(rank, 2)[1] == (True, [1, 2])


def test_recv_that_is_told_what_comes(run: Run) -> None:
    def rank() -> Any:
        if first():
            return comm.send(flow.tensor([[1, 2]]), 1, send_meta=False)
        return comm.recv(0, (1, 2), flow.int64, "cpu").tolist()

    assert run(rank, 2)[1] == [[1, 2]]


def test_messages_between_two_ranks_arrive_in_order(run: Run) -> None:
    def rank() -> Any:
        if first():
            return [comm.send(flow.tensor(number), 1) for number in range(5)]
        return [int(comm.recv(0)) for _ in range(5)]

    assert run(rank, 2)[1] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("given", ["shape", "dtype", "device", "shape dtype"])
def test_recv_refuses_some_of_shape_dtype_and_device(run: Run, refused: Refused, given: str) -> None:
    known = {"shape": (2,), "dtype": flow.int64, "device": "cpu"}

    def rank() -> str:
        some: dict[str, Any] = {name: known[name] for name in given.split()}
        return refused(RuntimeError, lambda: comm.recv(0, **some))

    assert all("shape, dtype and device, or none of them" in text for text in run(rank, 2))


def test_another_shape_than_awaited_is_told(run: Run) -> None:
    def rank() -> str:
        if first():
            comm.send(flow.zeros(2, 3), 1)
        with pytest.raises(RuntimeError) as caught:
            comm.barrier() if first() else comm.recv(0, out=flow.zeros(5))
        return str(caught.value)

    assert "(5,)" in run(rank, 2)[1]


def test_arguments_of_other_types_are_refused(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        anything: Any = 0.0
        return [
            refused(TypeError, lambda: comm.send(flow.zeros(2), anything)),
            refused(TypeError, lambda: comm.send([1.0], 1)),
            refused(TypeError, lambda: comm.recv(flow.zeros(2))),
        ]

    for texts in run(rank, 2):
        assert "send(): argument 'dst' must be int64, not <class 'float'>" in texts[0]
        assert "send(): argument 'input'" in texts[1]
        assert "recv(): argument 'src' must be int64, not <class 'collshim.oneflow.framework" in texts[2]


@pytest.mark.parametrize("send_meta", [None, "x", 1.5, np.True_])
def test_send_meta_that_is_no_bool_is_refused_and_nothing_sent(run: Run, refused: Refused, send_meta: Any) -> None:
    def rank() -> Any:
        if first():
            text = refused(TypeError, lambda: comm.send(flow.tensor([1]), 1, send_meta))
            comm.send(flow.tensor([2]), 1, 1)
            return text
        return comm.recv(0).tolist()

    text, received = run(rank, 2)
    assert f"send(): argument 'send_meta' must be bool, not {type(send_meta)}" in text
    assert received == [2]


@pytest.mark.parametrize("out", [5, "a", [1.0]])
def test_an_out_of_recv_that_is_no_tensor_is_refused(run: Run, refused: Refused, out: Any) -> None:
    def rank() -> str:
        return refused(TypeError, lambda: comm.recv(0, out=out))

    for text in run(rank, 2):
        assert f"recv(): argument 'out' must be tensor, not {type(out)}" in text


def test_sending_to_oneself_or_to_nobody_is_refused(run: Run, refused: Refused) -> None:
    def rank() -> tuple[str, str]:
        here = flow.env.get_rank()
        own = refused(ValueError, lambda: comm.send(flow.zeros(2), here))
        return own, refused(IndexError, lambda: comm.send(flow.zeros(2), 7))

    for own, nobody in run(rank, 2):
        assert "this rank, should be another rank" in own
        assert "7, should be from 0 to 1" in nobody


@pytest.mark.parametrize("kind", [RuntimeError, IndexError])
@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_that_is_none_is_oneflows_error_and_pythons(
    run: Run, refused: Refused, kind: type[Exception], rank: int
) -> None:
    def calls() -> None:
        refused(kind, lambda: comm.send(flow.zeros(2), rank))
        refused(kind, lambda: comm.recv(rank, out=flow.zeros(2)))

    run(calls, 2)


@pytest.mark.parametrize("arguments", [{}, {"shape": (2,), "dtype": flow.float32, "device": "cpu"}])
def test_receiving_from_oneself_is_refused_at_once(run: Run, refused: Refused, arguments: dict[str, Any]) -> None:
    def rank() -> str:
        return refused(RuntimeError, lambda: comm.recv(flow.env.get_rank(), **arguments))

    assert all("this rank, should be another rank" in text for text in run(rank, 2))


def test_no_rank_leaves_a_barrier_before_all_have_come(run: Run, size: int) -> None:
    came: list[int] = []

    def rank() -> Any:
        came.append(flow.env.get_rank())
        returned = comm.barrier()
        return returned, len(came)

    assert run(rank, size) == [(None, size)] * size


def test_barrier_takes_no_argument() -> None:
    with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
        comm.barrier(0)


def test_a_message_that_nobody_sends_is_told_at_the_deadline() -> None:
    def rank() -> str:
        with pytest.raises(collshim.CommunicationError) as caught:
            comm.barrier() if first() else comm.recv(0)
        return str(caught.value)

    with collshim.options(timeout=0.5):
        assert all(collshim.launch(rank, 2, timeout=30))
