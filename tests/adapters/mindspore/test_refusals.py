"""Calls that comm_func refuses, with MindSpore's class and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim
from collshim.mindspore.communication import comm_func
from tests.adapters.conftest import Refused, Run

comm: Any = comm_func  # calls that the types forbid are tested too
x, scalar = torch.zeros(4), torch.tensor(1.0)
batch, exchange, counted = comm.batch_isend_irecv, comm.all_to_all_with_output_shape, comm.all_to_all_v_c
single = comm.all_to_all_single_with_output_shape

NO_STRING = "the argument 'group' must be type of string, but got 'group' type : <class 'int'>"
INDIVISIBLE = (
    "the first dimension for 'input_shape' must be divided by 'rank_size', but got input_shape[0]: {}, rank_size: 2"
)
NO_PEER = "the argument 'world_rank_id' is not found in GROUP_RANKS, 'group' : mccl_world_group"
ROOTED = {"broadcast": "src", "scatter_tensor": "src", "reduce": "dst", "gather_into_tensor": "dst"}
MESSAGES = {"send": "dst", "isend": "dst", "recv": "src", "irecv": "src"}


def rooted(name: str, what: str) -> list[tuple[Callable[[], Any], type[Exception], str]]:
    """Return the calls that every function with a root refuses."""
    called = getattr(comm, name)
    nobody = "Group mccl_world_group doesn't contain the global rank {}"
    return [
        (lambda: called(x, 2), RuntimeError, nobody.format(2)),
        (lambda: called(x, -1), TypeError, "a root must be a global rank from 0 on, but got -1"),
        (lambda: called(x, "a"), TypeError, f"For {name}, the {what} must be int"),
        (lambda: called(1, 0), TypeError, f"For {name}, the input tensor must be tensor"),
        (lambda: called(x, 0, group=None), TypeError, "'group' must be type of string"),
    ]


def messages(name: str, what: str) -> list[tuple[Callable[[], Any], type[Exception], str]]:
    """Return the calls that every function for a message refuses."""
    called = getattr(comm, name)
    return [
        *((lambda peer=peer: called(x, peer), KeyError, NO_PEER) for peer in (7, -1)),
        (lambda: called(1), TypeError, f"For {name}, the input tensor must be tensor"),
        (lambda: called(x, "a"), TypeError, f"For {name}, the {what} must be int"),
    ]


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    *(row for name, what in ROOTED.items() for row in rooted(name, what)),
    *(row for name, what in MESSAGES.items() for row in messages(name, what)),
    (lambda: comm.all_gather_into_tensor(x, 1), TypeError, NO_STRING),
    (lambda: comm.reduce_scatter_tensor(x, "foo"), ValueError, "'foo'"),
    (lambda: comm.reduce_scatter_tensor(x, 5), TypeError, "the input op type must be str"),
    *(
        (lambda call=call, part=part: call(part), ValueError, INDIVISIBLE.format(length))
        for call in (comm.reduce_scatter_tensor, comm.scatter_tensor)
        for part, length in ((torch.zeros(3, 2), 3), (scalar, 1))
    ),
    *(
        (lambda call=call: call(x, async_op=1), TypeError, "'async_op' must be a bool, but got <class 'int'>")
        for call in (comm.all_reduce, comm.all_gather_into_tensor, comm.reduce_scatter_tensor)
    ),
    (lambda: exchange([(4,)] * 2, [x] * 2, None, 1), TypeError, "'async_op' must be a bool"),
    (lambda: counted(x, x.clone(), [2, 2, 2, 2], None, 1), TypeError, "'async_op' must be a bool"),
    (lambda: exchange(x, [x, x]), TypeError, "Expected list or tuple, but got <class 'torch.Tensor'>."),
    (lambda: exchange([(4,)] * 3, [x] * 3), TypeError, "tensor len must be equal to group rank size, but got 3"),
    (lambda: exchange([(4,), "x"], [x, x]), TypeError, ""),
    (lambda: exchange([(4,), (4,)], [x, 1]), TypeError, ""),
    (lambda: exchange([(4,), (4,)], [x, x], 1), TypeError, ""),
    (lambda: single((4,), x, input_split_sizes=[1, 2]), ValueError, "add up to 4, but got [1, 2]"),
    (lambda: single((4,), x, output_split_sizes=[4]), ValueError, "must be 2 counts"),
    (lambda: single((), scalar), ValueError, ""),
    (lambda: single((4,), [1.0]), TypeError, ""),
    (lambda: counted(x, x, [1, 2]), ValueError, ""),
    (lambda: counted(x, x, [1, 1, 1, 1]), ValueError, ""),
    (lambda: counted(x, x, [5, -1, -1, 5]), ValueError, ""),
    (lambda: counted(x, x, [2.0, 2, 2, 2]), TypeError, ""),
    (lambda: counted(x, x, 3), TypeError, ""),
    (lambda: counted(torch.zeros(4, 2)[:, 0], x, [2, 2, 2, 2]), ValueError, ""),
    (lambda: batch([comm.P2POp("isend", (1,), 0)]), TypeError, ""),
    (lambda: batch([comm.P2POp("isend", x, 7)]), KeyError, NO_PEER),
]


@pytest.mark.parametrize(("call", "theirs", "text"), REFUSED)
def test_invalid_call_is_refused(
    run: Run, refused: Refused, call: Callable[[], Any], theirs: type[Exception], text: str
) -> None:
    for told in run(lambda: refused(theirs, call), 2):
        assert text in told


def test_non_tensor_is_refused_even_before_init(refused: Refused) -> None:
    def rank() -> str:
        return refused(TypeError, lambda: comm.all_gather_into_tensor([1]))

    wanted = "For all_gather_into_tensor, the input tensor must be tensor"
    assert all(wanted in text for text in collshim.launch(rank, 2, timeout=200))


def test_calls_before_init_ask_for_init() -> None:
    def rank() -> str:
        with pytest.raises(RuntimeError, match="Please call `init\\(\\)` method first") as caught:
            comm.all_gather_into_tensor(x)
        return type(caught.value).__name__

    assert collshim.launch(rank, 2, timeout=200) == ["WorldError"] * 2


@pytest.mark.parametrize("gradient", [False, True])
def test_part_of_unexpected_shape_is_reported(run: Run, gradient: bool) -> None:
    def rank() -> str:
        parts = [torch.zeros(2).requires_grad_(gradient)] * 2
        with pytest.raises(collshim.MismatchError) as caught:
            exchange([(3,), (3,)], parts)
        return str(caught.value)

    assert all("(2,)" in text and "(3,)" in text for text in run(rank, 2))
