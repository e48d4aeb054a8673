"""The location of a call: the user's nearest line, in neither collshim nor torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import collshim
from collshim.calls.site import how_it_failed
from tests.engine.worlds import on_ranks, world

PACKAGE = Path(collshim.__file__).parent
SOURCE = "from collshim.calls.site import caller\nsite = caller().site()\n"
FAILING = "raise ValueError('no')\n"
USERS = {
    "a file that begins like the package": f"{PACKAGE}_train.py",
    "a folder that begins like the package": f"{PACKAGE}_jobs/train.py",
    "another project's adapters": f"{PACKAGE.parent}/adapters/train.py",
    "another project's conformance": f"{PACKAGE.parent}/conformance_of_mine/train.py",
    "a file that begins like torch": f"{torch.__path__[0]}_train.py",
}
OTHERS = {
    "a file of the package": f"{PACKAGE}/work.py",
    "a file of an adapter": f"{PACKAGE}/torch/distributed/work.py",
    "a file of an adapter, where its link leads": f"{(PACKAGE / 'torch').resolve()}/distributed/work.py",
    "a file of torch": f"{torch.__path__[0]}/autograd/function.py",
}


def _site(filename: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(SOURCE, filename, "exec"), names)
    return names["site"]


def _failure(filename: str) -> str:
    try:
        exec(compile(FAILING, filename, "exec"))
    except ValueError as error:
        return how_it_failed(error)
    return "nothing"


@pytest.mark.parametrize("name", USERS)
def test_user_file_is_named(name: str) -> None:
    assert _site(USERS[name]) == "train.py:2" if "/train" in USERS[name] else f"{Path(USERS[name]).name}:2"


@pytest.mark.parametrize("name", OTHERS)
def test_library_frames_are_skipped(name: str) -> None:
    assert _site(OTHERS[name]).startswith("test_call.py:")


@pytest.mark.parametrize("name", USERS)
def test_failure_in_the_users_file_is_located(name: str) -> None:
    assert _failure(USERS[name]) == f"failed with ValueError: no (at {Path(USERS[name]).name}:1)"


@pytest.mark.parametrize("name", OTHERS)
def test_failure_elsewhere_is_located_at_the_users_call(name: str) -> None:
    assert "(at test_call.py:" in _failure(OTHERS[name])


def test_long_failure_keeps_its_end() -> None:
    end = "; these are ranks of the group; in the world they are ranks 1, 2, 3"
    text = how_it_failed(ValueError(f"rank 0 did not arrive {'x' * 1000}{end}"))
    assert text.startswith("failed with ValueError: rank 0 did not arrive xxx")
    assert text.endswith(end)
    assert len(text) < 400


def _backward_of_one() -> Any:
    comm = world()
    given = torch.ones(3, requires_grad=True)
    result = comm.all_reduce(given).wait()
    with pytest.raises(collshim.MismatchError) as found:
        result.sum().backward() if comm.rank == 0 else comm.all_reduce(torch.ones(5)).wait()
    return [line.rpartition(" at ")[2].partition(":")[0] for line in str(found.value).split("\n")[1:]]


def test_call_in_a_backward_names_the_backward(checked: str) -> None:
    assert on_ranks(_backward_of_one, 2, checked) == [["test_call.py"] * 2] * 2
