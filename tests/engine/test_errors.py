"""The tree of errors, and classes with two bases."""

from __future__ import annotations

import pickle

import pytest

import collshim
from collshim import errors
from collshim.errors import also, refusal

TREE = {
    "ArgumentError": (),
    "ArgumentTypeError": ("ArgumentError", "TypeError"),
    "ArgumentValueError": ("ArgumentError", "ValueError"),
    "ArgumentIndexError": ("ArgumentError", "IndexError"),
    "MissingNameError": (),
    "WorldError": ("RuntimeError",),
    "CommunicationError": ("RuntimeError",),
    "MismatchError": ("CommunicationError",),
    "DeadlineError": ("CommunicationError", "TimeoutError"),
    "PeerError": ("CommunicationError",),
    "BrokenCommunicatorError": ("CommunicationError",),
    "RankError": ("RuntimeError",),
}


@pytest.mark.parametrize("name", TREE)
def test_errors_have_the_expected_base_classes(name: str) -> None:
    kind = getattr(errors, name)
    above = {base.__name__ for base in kind.__mro__}
    assert {*TREE[name], "CollshimError", "Exception"} <= above
    assert getattr(collshim, name) is kind


@pytest.mark.parametrize("theirs", [AssertionError, ValueError, RuntimeError, NotImplementedError])
def test_combined_class_is_ours_and_the_frameworks(theirs: type[Exception]) -> None:
    kind = also(errors.ArgumentError, theirs)
    with pytest.raises(theirs, match="no"):
        raise kind("no")
    assert issubclass(kind, errors.ArgumentError)
    assert also(errors.ArgumentError, theirs) is kind


def test_class_already_ours_is_kept() -> None:
    assert also(errors.ArgumentTypeError, TypeError) is errors.ArgumentTypeError


@pytest.mark.parametrize("kind", [errors.MismatchError, also(errors.ArgumentError, AssertionError)])
def test_errors_can_be_pickled(kind: type[Exception]) -> None:
    found = pickle.loads(pickle.dumps(kind("no")))
    assert (type(found), str(found)) == (kind, "no")


def test_rank_error_is_pickled_with_its_rank() -> None:
    found = pickle.loads(pickle.dumps(errors.RankError("rank 3 failed", 3, ValueError("no"))))
    assert (str(found), found.rank, repr(found.exception)) == ("rank 3 failed", 3, "ValueError('no')")


def test_engine_error_text() -> None:
    text = refusal("all_reduce", "dtype", "bool", "a number", 1, 4)
    assert text == "all_reduce: dtype is bool, should be a number (rank 1 of 4)"
    assert refusal("send", "tag", -1, "0 or more", 0, 2, "shape (3,)").endswith("(rank 0 of 2, shape (3,))")
