"""Commands print to any encoding."""

from __future__ import annotations

import io
import sys

import pytest

from collshim.output import write_everything


@pytest.mark.parametrize(
    ("encoding", "errors", "expected"),
    [
        ("ascii", "strict", "a -> b^2 - \\xe9 \\u4e2d"),
        ("ascii", "surrogateescape", "a -> b^2 - \\xe9 \\u4e2d"),
        ("latin-1", "strict", "a -> b² - é \\u4e2d"),
        ("utf-8", "strict", "a → b² – é 中"),
        ("ascii", "replace", "a ? b? ? ? ?"),
    ],
)
def test_characters_that_the_encoding_lacks_are_spelled(
    encoding: str, errors: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(memory, encoding=encoding, errors=errors))
    write_everything()
    print("a → b² – é 中", end="", flush=True)
    assert memory.getvalue().decode(encoding) == expected


def test_stream_without_a_position_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def reconfigure(**_: str) -> None:
        raise OSError("Illegal seek")

    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(stream, "reconfigure", reconfigure, raising=False)
    write_everything()
    assert stream.errors == "strict"
