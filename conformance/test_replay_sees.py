"""The comparison of a recording with an answer reports the differences, and only those."""

from __future__ import annotations

from typing import Any

import pytest

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.performing import Answer
from collshim.conformance.recorder.recordings import Recording
from collshim.conformance.recorder.trees import Tree, given
from collshim.conformance.replay import sentences


def recording(answer: Answer, call: str = "f(x)", match: str = "") -> Recording:
    return Recording(Asked("f/one", call, ("torch.f",), 1, ({},), match), (answer,))


def raised(*classes: str, text: str = "") -> Answer:
    return {"raised": [*classes, "Exception"], "text": text}


X = given([1.0, 2.0], "float32")
RETURNED: list[tuple[Tree, Tree, str]] = [
    (None, X, "returned is {'tensor': 'float32[2]'"),
    ([X], {"tuple": [X]}, "should be [{'tensor'"),
    ([X], [X, X], "the length of returned is 2, should be 1"),
    (X, given([1.0, 3.0], "float32"), "returned at [1] is 3.0, should be 2.0"),
    (X, given([1.0, 2.0], "float64"), "the type of returned is float64[2], should be float32[2]"),
    (X, given([[1.0, 2.0]], "float32"), "the type of returned is float32[1,2], should be float32[2]"),
    (X, given([1.0, 2.0], "float32", kind="numpy"), "the kind of returned is numpy, should be tensor"),
    (X, given([1.0, 2.0], "float32", grad=True), "that returned is differentiable is True, should be False"),
    (given([0.0], "float32"), given([-0.0], "float32"), "returned at [0] is -0.0, should be 0.0"),
    ({"object": "Work"}, {"object": "CommHandle"}, "returned.object is 'CommHandle', should be 'Work'"),
    (True, 1, "returned is 1, should be True"),
    ({"dict": [["a", X]]}, {"dict": [["b", X]]}, "returned[0][0] is 'b', should be 'a'"),
]


@pytest.mark.parametrize(("wanted", "found", "text"), RETURNED)
def test_a_difference_in_the_result_is_reported(wanted: Tree, found: Tree, text: str) -> None:
    assert sentences(recording({"returned": wanted}), [{"returned": wanted}]) == []
    (line,) = sentences(recording({"returned": wanted}), [{"returned": found}])
    assert text in line
    assert line.startswith("f/one@1: ")
    assert "(rank 0 of 1)" in line


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ({"after": {"x": X}}, "x is unchanged, should be changed"),
        ({"replaced": ["outs[0]"]}, "the list of places with a new object is [], should be ['outs[0]']"),
        ({"same": {"returned": "x"}}, "the map of results that are an input is {}, should be {'returned': 'x'}"),
        ({"shared": [["x", "returned"]]}, "the list of pairs that share memory is [], should be [['x', 'returned']]"),
    ],
)
def test_a_difference_in_the_arguments_is_reported(fact: dict[str, Any], text: str) -> None:
    with_fact, without = {"returned": None, **fact}, {"returned": None}
    (line,) = sentences(recording(with_fact), [without])
    assert text in line
    assert len(sentences(recording(without), [with_fact])) == 1


def test_an_instance_of_the_recorded_exception_agrees() -> None:
    recorded = recording(raised("ValueError"))
    assert sentences(recorded, [raised("collshim.errors.ArgumentValueError", "ValueError")]) == []
    assert "should be ValueError" in sentences(recorded, [raised("TypeError")])[0]
    assert "the exception is none" in sentences(recorded, [{"returned": None}])[0]


def test_a_base_class_of_the_recorded_exception_differs() -> None:
    assert len(sentences(recording(raised("IndexError", "LookupError")), [raised("LookupError")])) == 1


def test_an_unrecorded_exception_is_reported() -> None:
    assert (
        "the exception is ValueError: 'no'"
        in sentences(recording({"returned": None}), [raised("ValueError", text="no")])[0]
    )


def test_the_matched_part_of_an_error_text_is_compared() -> None:
    recorded = recording(raised("ValueError", text="sizes differ: 3"), match="sizes differ")
    assert sentences(recorded, [raised("ValueError", text="f: sizes differ: 4")]) == []
    assert "the text of the exception" in sentences(recorded, [raised("ValueError", text="no")])[0]


def test_only_inexact_reductions_have_a_tolerance() -> None:
    wanted, near = {"returned": given([0.1], "float32")}, {"returned": given([0.1000001], "float32")}
    assert sentences(recording(wanted, "all_reduce(x)"), [near]) == []
    assert len(sentences(recording(wanted, "broadcast(x)"), [near])) == 1


def test_only_collshim_errors_agree_with_an_accident() -> None:
    accident = recording({"ended": "died"})
    assert sentences(accident, [raised("x.Error", "collshim.errors.CollshimError")]) == []
    assert sentences(accident, [{"returned": None}]) == []
    assert len(sentences(accident, [raised("RuntimeError")])) == 1


def test_the_adapter_must_answer_beyond_a_backend_limit() -> None:
    limit = recording({**raised("RuntimeError", text="unregistered"), "limit": True})
    assert sentences(limit, [{"returned": None}]) == []
    assert len(sentences(limit, [raised("RuntimeError", text="unregistered")])) == 1
