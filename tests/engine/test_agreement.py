"""What is said of calls that do not belong together: the field, the minority, every call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim.calls.agreement import disagreement, objection_to_pair
from collshim.calls.call import Call

F32, F64, I32 = torch.float32, torch.float64, torch.int32


def call(op: str = "all_reduce", shape: Any = (3,), dtype: Any = F32, **more: Any) -> Call:
    if op in ("all_reduce", "reduce", "reduce_scatter"):
        more.setdefault("reduce_op", "sum")
    if op in ("reduce", "broadcast", "gather", "scatter"):
        more.setdefault("root", 0)
    return Call(op, shape, dtype, "cpu", **more)


def shapes(*lengths: int) -> tuple[tuple[int, ...], ...]:
    return tuple((length,) for length in lengths)


AGREE: dict[str, list[Call]] = {
    "one rank": [call()],
    "alike": [call()] * 3,
    "called from different lines": [call(site="a.py:1"), call(site="b.py:2")],
    "who needs gradients": [call(needs_grad=True), call()],
    "factors that are no numbers": [call(reduce_op="premul_sum", factor=float("nan")) for _ in range(2)],
    "barriers": [call("barrier", None, None)] * 2,
    "off the root nothing is known": [call("broadcast"), Call("broadcast", root=0)],
    "a broadcast to who knows the shape": [call("broadcast"), call("broadcast")],
    "a scatter of unequal parts": [
        call("scatter", None, sends=shapes(1, 2)),
        call("scatter", (2,)),
    ],
    "a scatter to who knows nothing": [call("scatter", (3,)), call("scatter", None, None)],
    "a ragged gather": [call("all_gather", (1,), expects=()), call("all_gather", (2,), expects=())],
    "a ragged gather by one rank": [call("all_gather"), call("all_gather", expects=())],
    "an unequal gather that is awaited": [
        call("all_gather", (1,), expects=shapes(1, 2)),
        call("all_gather", (2,), expects=()),
    ],
    "gathered shapes off the root": [call("gather", (1,), expects=()), call("gather", (2,))],
    "an unequal exchange": [
        call("all_to_all", None, sends=shapes(1, 2), expects=shapes(1, 3)),
        call("all_to_all", None, sends=shapes(3, 4), expects=()),
    ],
    "an exchange of a list and an array": [
        call("all_to_all", None, sends=shapes(3, 3), expects=()),
        call("all_to_all", (3,)),
    ],
    "parts that are unequal alike": [call("reduce_scatter", None, sends=shapes(1, 2))] * 2,
    "parts that are equal, listed and stacked": [
        call("reduce_scatter", None, sends=shapes(3, 3)),
        call("reduce_scatter", (3,)),
    ],
}


@pytest.mark.parametrize("calls", AGREE.values(), ids=AGREE)
def test_these_agree(calls: list[Call]) -> None:
    assert disagreement(calls) is None


DISAGREE: dict[str, tuple[list[Call], str]] = {
    "operation": ([call(), call("barrier", None, None), call()], "op: rank 1 has barrier, the others all_reduce"),
    "reduce op": ([call(), call(), call(reduce_op="max")], "reduce op: rank 2 has max, the others sum"),
    "factor": (
        [call(reduce_op="premul_sum", factor=float(rank)) for rank in range(2)],
        "factor: rank 0 has 0.0, rank 1 has 1.0",
    ),
    "root": ([call("reduce", root=rank) for rank in (1, 1, 0)], "root: rank 2 has 0, the others 1"),
    "dtype": ([call(dtype=F64), call(), call()], "dtype: rank 0 has float64, the others float32"),
    "dtype of two ranks of three": (
        [call("broadcast"), call("broadcast", None, None), call("broadcast", dtype=F64)],
        "dtype: rank 0 has float32, rank 2 has float64",
    ),
    "device": ([call(), call()._replace(device="cuda")], "device: rank 0 has cpu, rank 1 has cuda"),
    "shape": ([call(), call(), call(shape=(4,))], "shape: rank 2 has (4,), the others (3,)"),
    "shape in a tie": ([call(), call(shape=(4,))], "shape: rank 0 has (3,), rank 1 has (4,)"),
    "shape of two pairs": (
        [call(), call(shape=(4,)), call(), call(shape=(4,))],
        "shape: rank 0 has (3,), rank 1 has (4,), rank 2 has (3,), rank 3 has (4,)",
    ),
    "shape of two in a minority": (
        [call(), call(shape=(4,)), call(), call(shape=(5,)), call()],
        "shape: rank 1 has (4,), rank 3 has (5,), the others (3,)",
    ),
    "shapes of a gather": (
        [call("all_gather"), call("all_gather"), call("all_gather", (3, 1))],
        "shape: rank 2 has (3, 1), the others (3,)",
    ),
    "shapes of a rooted gather": (
        [call("gather"), call("gather", (9,)), call("gather")],
        "shape: rank 1 has (9,), the others (3,)",
    ),
    "parts of a reduction": (
        [call("reduce_scatter", None, sends=shapes(1, length)) for length in (2, 2, 3)],
        "shape: rank 2 has ((1,), (3,)), the others ((1,), (2,))",
    ),
}
UNMET: dict[str, tuple[list[Call], str]] = {
    "broadcast": (
        [call("broadcast", root=1), call("broadcast", (5,), root=1)],
        "broadcast: rank 1 gives rank 0 shape (5,), rank 0 awaits (3,)",
    ),
    "scatter": (
        [call("scatter", None, sends=shapes(1, 2)), call("scatter", (7,))],
        "scatter: rank 0 gives rank 1 shape (2,), rank 1 awaits (7,)",
    ),
    "all_gather": (
        [call("all_gather", (1,), expects=shapes(1, 2)), call("all_gather", (3,), expects=())],
        "all_gather: rank 1 gives rank 0 shape (3,), rank 0 awaits (2,)",
    ),
    "gather": (
        [call("gather", (1,), expects=shapes(1, 2)), call("gather", (3,))],
        "gather: rank 1 gives rank 0 shape (3,), rank 0 awaits (2,)",
    ),
    "all_to_all": (
        [
            call("all_to_all", None, sends=shapes(1, 2), expects=shapes(1, 3)),
            call("all_to_all", None, sends=shapes(4, 5), expects=()),
        ],
        "all_to_all: rank 1 gives rank 0 shape (4,), rank 0 awaits (3,)",
    ),
}


@pytest.mark.parametrize(("calls", "text"), DISAGREE.values(), ids=DISAGREE)
def test_the_field_and_the_minority_are_named(calls: list[Call], text: str) -> None:
    found = disagreement(calls)
    assert found is not None
    assert found.split("\n")[0] == f"{calls[0].op}: ranks disagree on {text}"


@pytest.mark.parametrize(("calls", "text"), UNMET.values(), ids=UNMET)
def test_sender_and_receiver_are_named(calls: list[Call], text: str) -> None:
    found = disagreement(calls)
    assert found is not None
    assert found.split("\n")[0] == text


@pytest.mark.parametrize("calls", [calls for calls, _ in (DISAGREE | UNMET).values()], ids=DISAGREE | UNMET)
def test_every_call_is_shown(calls: list[Call]) -> None:
    found = disagreement(calls)
    assert found is not None
    assert found.split("\n")[1:] == [f"  rank {rank}: {known}" for rank, known in enumerate(calls)]


@pytest.mark.parametrize("calls", [calls for calls, _ in (DISAGREE | UNMET).values()], ids=DISAGREE | UNMET)
def test_any_order_of_the_ranks_disagrees(calls: list[Call]) -> None:
    if calls[0].root is None and calls[0].sends is None and calls[0].expects is None:
        assert disagreement(calls[::-1]) is not None


SEND = call("send", root=1)
PAIRS = {
    "dtype": (call("recv", dtype=F64), "recv: dtype awaited is float64, the sender gives float32"),
    "shape": (call("recv", (4,)), "recv: shape awaited is (4,), the sender gives (3,)"),
    "0-d": (call("recv", ()), "recv: shape awaited is (), the sender gives (3,)"),
}


@pytest.mark.parametrize(("recv", "text"), PAIRS.values(), ids=PAIRS)
def test_a_pair_that_does_not_fit_is_told_with_both_calls(recv: Call, text: str) -> None:
    failure = objection_to_pair(SEND, recv, range(2))
    assert str(failure) == f"{text}\n  sender: {SEND}\n  receiver: {recv}"


@pytest.mark.parametrize("recv", [call("recv"), call("recv", None, None), call("recv", None, F32)])
def test_a_pair_that_fits(recv: Call) -> None:
    assert objection_to_pair(SEND, recv, range(2)) is None


SHOWN = {
    "all_reduce(shape (3,), float32, op sum)": call(),
    "all_reduce(shape (3,), float32, op premul_sum, factor 2.0)": call(reduce_op="premul_sum", factor=2.0),
    "broadcast(shape (), int32, root 2) at train.py:7": call("broadcast", (), I32, root=2, site="train.py:7"),
    "send(shape (3,), float32, to 1)": SEND,
    "recv(from 0)": Call("recv", root=0),
    "barrier()": Call("barrier"),
    "all_to_all(sends [(1,), (2,)], expects [(3,), (0,)], float32)": call(
        "all_to_all", None, sends=shapes(1, 2), expects=shapes(3, 0)
    ),
}


@pytest.mark.parametrize(("text", "known"), SHOWN.items(), ids=SHOWN)
def test_a_call_is_shown_like_a_call(text: str, known: Call) -> None:
    assert str(known) == text
