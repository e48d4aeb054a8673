"""``launch`` of functions that no module has: of a notebook, a session or standard input, local ones and lambdas."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest

import collshim

pytestmark = pytest.mark.processes

SESSION = """
import collshim, sys
from functools import partial
def total(more=0):
    return collshim.current().rank + more, counted(2)
def counted(number):
    return [number]
def show(function):
    try:
        print(collshim.launch(function, 2, ranks="processes", timeout=60))
    except collshim.ArgumentTypeError as error:
        print(error)
show(total)
show(partial(total, 10))
sys.modules["cloudpickle"] = None  # how Python marks what is not there
show(total)
show(partial(total, 10))
"""
SENT = ["[(0, [2]), (1, [2])]", "[(10, [2]), (11, [2])]"]
NOT_SENT = ["launch: the function is defined in a notebook or a session"] * 2


def told(*how: str) -> list[str]:
    """Return the output of the program if Python gets it in this way."""
    done = subprocess.run(
        [sys.executable, *how],
        input=SESSION,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


def test_session_functions_need_cloudpickle() -> None:
    found = told("-c", SESSION)
    assert found[:2] == SENT
    assert [line[: len(text)] for line, text in zip(found[2:], NOT_SENT, strict=True)] == NOT_SENT


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 treats such a program as a session")
def test_program_from_standard_input_is_refused() -> None:
    assert told("-") == ["launch: the program came from standard input, should be a file: the ranks import it"] * 4


def place(value: Any) -> Any:
    return value


def test_unpicklable_argument_is_refused() -> None:
    with pytest.raises(collshim.ArgumentTypeError, match="cannot be sent to another process"):
        collshim.launch(place, 2, ranks="processes", args=(threading.Lock(),))


@pytest.mark.parametrize(("fn", "args"), [(lambda: None, ()), (place, (lambda: None,))])
def test_lambda_without_cloudpickle_is_refused_with_a_remedy(
    fn: Any, args: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # how Python marks what is not there
    with pytest.raises(collshim.ArgumentTypeError, match=r"cannot be sent .*: write the function into a"):
        collshim.launch(fn, 2, ranks="processes", args=args)


def test_local_function_is_sent_with_cloudpickle() -> None:
    pytest.importorskip("cloudpickle")
    more = 10

    def ranks() -> int:
        return collshim.current().rank + more

    assert collshim.launch(ranks, 2, ranks="processes", timeout=200) == [10, 11]


def test_code_sent_with_cloudpickle_keeps_its_file() -> None:
    pytest.importorskip("cloudpickle")

    def ranks() -> list[str]:
        def inner() -> None: ...

        return [code.__code__.co_filename for code in (inner, lambda: None)]

    assert collshim.launch(ranks, 1, ranks="processes", timeout=200) == [[__file__, __file__]]
