"""The report of mismatched calls: the field, the minority, every call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim.calls.agreement import disagreement, objection_to_pair
from collshim.calls.call import Call
from collshim.calls.collective import COLLECTIVES

F32, F64, I32 = torch.float32, torch.float64, torch.int32


def call(op: str = "all_reduce", shape: Any = (3,), dtype: Any = F32, **more: Any) -> Call:
    if op in ("all_reduce", "reduce", "reduce_scatter"):
        more.setdefault("reduce_op", "sum")
    if op in ("reduce", "broadcast", "gather", "scatter"):
        more.setdefault("root", 0)
    return Call(COLLECTIVES[op], shape, dtype, "cpu", **more)


def shapes(*lengths: int) -> tuple[tuple[int, ...], ...]:
    return tuple((length,) for length in lengths)


AGREE: dict[str, list[Call]] = {
    "called from different lines": [call(site="a.py:1"), call(site="b.py:2")],
    "factors that are no numbers": [call(reduce_op="premul_sum", factor=float("nan")) for _ in range(2)],
    "a scatter to who knows nothing": [call("scatter", (3,)), call("scatter", None, None)],
    "a ragged gather by one rank": [call("all_gather"), call("all_gather", expects=())],
    "an unequal gather that is awaited": [
        call("all_gather", (1,), expects=shapes(1, 2)),
        call("all_gather", (2,), expects=()),
    ],
    "gathered shapes off the root": [call("gather", (1,), expects=()), call("gather", (2,))],
    "an exchange of a list and an array": [
        call("all_to_all", None, sends=shapes(3, 3), expects=()),
        call("all_to_all", (3,)),
    ],
    "parts that are equal, listed and stacked": [
        call("reduce_scatter", None, sends=shapes(3, 3)),
        call("reduce_scatter", (3,)),
    ],
}


@pytest.mark.parametrize("calls", AGREE.values(), ids=AGREE)
def test_calls_agree(calls: list[Call]) -> None:
    assert disagreement(calls) is None


DISAGREE: dict[str, tuple[list[Call], str]] = {
    "dtype of two ranks of three": (
        [call("broadcast"), call("broadcast", None, None), call("broadcast", dtype=F64)],
        "broadcast: ranks disagree on dtype: rank 0 has float32, rank 2 has float64",
    ),
    "device": (
        [call(), call()._replace(device="cuda")],
        "all_reduce: ranks disagree on device: rank 0 has cpu, rank 1 has cuda",
    ),
    "shape in a tie": (
        [call(), call(shape=(4,))],
        "all_reduce: ranks disagree on shape: rank 0 has (3,), rank 1 has (4,)",
    ),
    "shape of two pairs": (
        [call(), call(shape=(4,)), call(), call(shape=(4,))],
        "all_reduce: ranks disagree on shape: rank 0 has (3,), rank 1 has (4,), rank 2 has (3,), rank 3 has (4,)",
    ),
    "shape of two in a minority": (
        [call(), call(shape=(4,)), call(), call(shape=(5,)), call()],
        "all_reduce: ranks disagree on shape: rank 1 has (4,), rank 3 has (5,), the others (3,)",
    ),
    "shapes of a rooted gather": (
        [call("gather"), call("gather", (9,)), call("gather")],
        "gather: ranks disagree on shape: rank 1 has (9,), the others (3,)",
    ),
    "an awaited gather": (
        [call("gather", (1,), expects=shapes(1, 2)), call("gather", (3,))],
        "gather: rank 1 sends rank 0 shape (3,), rank 0 expects (2,)",
    ),
}


@pytest.mark.parametrize(("calls", "text"), DISAGREE.values(), ids=DISAGREE)
def test_minority_or_sender_and_receiver_are_named(calls: list[Call], text: str) -> None:
    found = disagreement(calls)
    assert found is not None
    assert found.split("\n")[0] == text


SEND = call("send", root=1)
PAIRS = {
    "dtype": (call("recv", dtype=F64), "recv: the receiver expects dtype float64, the sender sends float32"),
    "0-d": (call("recv", ()), "recv: the receiver expects shape (), the sender sends (3,)"),
    "size": (call("recv", (2, 2)), "recv: the receiver expects shape (2, 2), the sender sends (3,)"),
}


@pytest.mark.parametrize(("recv", "text"), PAIRS.values(), ids=PAIRS)
def test_mismatched_pair_shows_both_calls(recv: Call, text: str) -> None:
    failure = objection_to_pair(SEND, recv, range(2))
    assert str(failure) == f"{text}\n  sender: {SEND}\n  receiver: {recv}"


def test_transposed_message_is_refused() -> None:
    failure = objection_to_pair(call("send", (2, 3), root=1), call("recv", (3, 2)), range(2))
    assert "expects shape (3, 2), the sender sends (2, 3)" in str(failure)


@pytest.mark.parametrize(
    ("sent", "awaited"), [((), (1,)), ((1, 3), (3, 1)), ((6,), (2, 3)), ((2, 3), (6,)), ((0,), (2, 0))]
)
def test_message_may_be_received_in_a_like_shape(sent: tuple[int, ...], awaited: tuple[int, ...]) -> None:
    assert objection_to_pair(call("send", sent, root=1), call("recv", awaited), range(2)) is None


@pytest.mark.parametrize("recv", [call("recv"), call("recv", None, None), call("recv", None, F32)])
def test_matching_pair_is_accepted(recv: Call) -> None:
    assert objection_to_pair(SEND, recv, range(2)) is None


SHOWN = {
    "all_reduce(shape (3,), float32, op sum)": call(),
    "all_reduce(shape (3,), float32, op premul_sum, factor 2.0)": call(reduce_op="premul_sum", factor=2.0),
    "broadcast(shape (), int32, root 2) at train.py:7": call("broadcast", (), I32, root=2, site="train.py:7"),
    "send(shape (3,), float32, to 1)": SEND,
    "recv(from 0)": Call(COLLECTIVES["recv"], root=0),
    "barrier()": Call(COLLECTIVES["barrier"]),
    "all_to_all(sends [(1,), (2,)], expects [(3,), (0,)], float32)": call(
        "all_to_all", None, sends=shapes(1, 2), expects=shapes(3, 0)
    ),
}


@pytest.mark.parametrize(("text", "known"), SHOWN.items(), ids=SHOWN)
def test_call_repr_looks_like_a_call(text: str, known: Call) -> None:
    assert str(known) == text
