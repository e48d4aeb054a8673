"""``tf.print``; every text was printed by TensorFlow 2.21."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

pytestmark = pytest.mark.unranked

PRINTED: dict[str, tuple[list[Any], str]] = {
    "python": (["hi", 1, 2.5, True, None, [1, 2], {"a": 1}, (1, 2)], "hi 1 2.5 True None [1, 2] {'a': 1} (1, 2)"),
    "scalars": ([tf.constant(1), tf.constant(1.0), tf.constant(True)], "1 1 1"),
    "floats": ([tf.constant([0.1, 1e-7, 1e10, 123456.789])], "[0.1 1e-07 1e+10 123456.789]"),
    "double": ([tf.constant(1 / 3, tf.float64)], "0.33333333333333331"),
    "half": ([tf.constant(3.14159274, tf.float16), tf.constant(3.14159, tf.bfloat16)], "3.140625 3.140625"),
    "special": ([tf.constant([1.5, float("nan"), float("inf"), -float("inf")])], "[1.5 nan inf -inf]"),
    "six": ([tf.range(6)], "[0 1 2 3 4 5]"),
    "seven": ([tf.range(7)], "[0 1 2 ... 4 5 6]"),
    "nested": (
        [{"b": tf.constant(2), "a": tf.constant([1.0, 2.0])}, [tf.constant(1), "s"], (tf.constant(2.0),)],
        "{'a': [1 2], 'b': 2} [1, 's'] (2,)",
    ),
    "variable": ([tf.Variable([1, 2]), np.array([1, 2, 3])], "[1 2] array([1, 2, 3])"),
    "dtype": ([tf.float32, tf.TensorShape([1, 2])], "tf.float32 TensorShape([1, 2])"),
    "empty": ([tf.zeros((0,)), [], (), {}], "[] [] () {}"),
    "matrix": ([tf.reshape(tf.range(4), (2, 2))], "[[0 1]\n [2 3]]"),
    "cube": ([tf.reshape(tf.range(8.0), (2, 2, 2))], "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"),
    "large": (
        [tf.reshape(tf.range(56), (8, 7))],
        "[[0 1 2 ... 4 5 6]\n [7 8 9 ... 11 12 13]\n [14 15 16 ... 18 19 20]\n ...\n [35 36 37 ... 39 40 41]\n"
        " [42 43 44 ... 46 47 48]\n [49 50 51 ... 53 54 55]]",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_text_is_that_of_tensorflow(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    values, wanted = PRINTED[name]
    tf.print(*values)
    out, error = capsys.readouterr()
    assert (out, error) == ("", f"{wanted}\n")


def test_options_change_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    tf.print("a", "b", sep="", end="|", output_stream=sys.stdout)
    tf.print(tf.range(10), summarize=2, output_stream=sys.stdout)
    tf.print(tf.range(10), summarize=-1, output_stream=sys.stdout)
    assert capsys.readouterr().out == "ab|[0 1 ... 8 9]\n[0 1 2 3 4 5 6 7 8 9]\n"


def test_file_gets_each_text_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "printed"
    for number in range(2):
        tf.print(tf.constant(number), output_stream=f"file://{file}")
    assert file.read_text() == "0\n1\n"


def test_other_options_and_streams_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^Unrecognized keyword arguments for tf.print: {'foo': 1}$"):
        tf.print("x", foo=1)
    with pytest.raises(ValueError, match=r"^Unsupported output stream, logging level, or file"):
        tf.print("x", output_stream="foo")
