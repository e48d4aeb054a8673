"""What ``options(objects=...)`` lets a rank unpickle from others; nothing else runs."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import functools
import pickle
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim
from collshim import ArgumentValueError, Communicator
from collshim.arrays.pickling import packed, restored
from collshim.settings import get
from tests.engine.worlds import attempt, on_ranks, world

GRID = np.arange(24.0).reshape(2, 3, 4)
DATES = np.array(["2020-01-01", "NaT"], dtype="M8[D]")
PADDED = np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "titles": ["t"], "itemsize": 16})

VALUES: dict[str, Any] = {
    "numbers": [1, -(10**40), 1.5, 1 - 2j, True, None],
    "text and bytes": ["ä", b"\0\1", bytearray(b"ab")],
    "containers": {"a": [(1, {2}), frozenset([3])], (1, "b"): {"deep": [[[]]]}, 3: slice(1, None), 4: range(3)},
    "collections": [collections.OrderedDict(b=1, a=2), collections.deque([1, 2], 3), collections.Counter("aab")],
    "times": [datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc), datetime.timedelta(1), datetime.date.min],
    "exact numbers": [decimal.Decimal("1.50"), fractions.Fraction(1, 3), uuid.UUID(int=5)],
    "torch's own": [torch.Size([1, 2]), torch.float32, torch.device("cpu")],
    "float32": torch.arange(3.0),
    "bfloat16": torch.ones(2, 2).bfloat16(),
    "bool": torch.tensor([True, False]),
    "complex": torch.tensor([1 + 1j]).conj(),
    "no elements": torch.empty(0, 3),
    "a module's state": torch.nn.BatchNorm1d(2).state_dict(),
    "a view": torch.arange(12.0).view(3, 4)[1:, ::2],
    "a tensor with a gradient": torch.ones(2, requires_grad=True),
    "a parameter": torch.nn.Parameter(torch.ones(2)),
    "a frozen parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
    "an array": GRID,
    "a strided array": GRID[:, ::2],
    "columns first": np.asfortranarray(GRID),
    "an array without elements": np.zeros((0, 3)),
    "an array of one": np.array(3),
    "other byte order": np.arange(4).astype(">i4"),
    "an array of text": np.array(["a", "bc"]),
    "an array of bytes": np.array([b"a", b"bc"])[::-1],
    "dates": DATES,
    "fields": np.array([(1, 2.0)], dtype="i4,f8"),
    "padded fields": np.zeros(2, PADDED),
    "aligned fields": np.zeros(2, np.dtype("i1,i4", align=True)),
    "fields of several": np.zeros(2, [("a", "i4", (2, 2))]),
    "an array of objects": np.array([[1, None], ["a", (1, [2])]], dtype=object, order="F"),
    "fields of objects": np.array([(1, "x")], dtype="i4,O"),
    "scalars": [np.float32(2), np.bool_(True), np.str_("ab"), np.complex64(1j), np.longdouble(1) / 3, DATES[0]],
    "a scalar of fields": np.array([(1, 2.0)], dtype="i4,f8")[0],
    "dtypes": [np.dtype("f4"), np.dtype(">i2"), PADDED],
}


def described(value: Any) -> Any:
    """Return a complete description of a value that compares with == and can be pickled."""
    if isinstance(value, torch.Tensor):
        how = value.dtype, tuple(value.shape), value.requires_grad, value.is_conj()
        return type(value).__name__, *map(str, how), value.detach().to(torch.complex128).tolist()
    if isinstance(value, np.ndarray | np.generic):
        flags = value.flags.writeable, value.flags.f_contiguous, value.dtype.isalignedstruct
        return type(value).__name__, value.dtype.descr, value.shape, flags, repr(value)
    if isinstance(value, list | tuple):
        return type(value).__name__, [described(item) for item in value]
    if isinstance(value, collections.OrderedDict):
        return type(value).__name__, described([*value.items()]), vars(value)
    return type(value).__name__, repr(value)


def pickled(value: Any) -> bytes:
    return bytes(packed(value))


@pytest.mark.parametrize("name", VALUES)
def test_values_are_restored_as_by_pickle(name: str) -> None:
    data = pickled(VALUES[name])
    assert described(restored(data, safely=True)) == described(pickle.loads(data))


def test_shared_objects_stay_shared() -> None:
    first, second, third = restored(pickled([DATES, DATES, GRID[0]]), safely=True)
    assert first is second
    assert len(set(map(id, restored(pickled([VALUES["exact numbers"][2]] * 2), safely=True)))) == 1
    assert not np.shares_memory(first, third)


def _all_values() -> Any:
    with collshim.options(objects="safe"):
        gathered = world().all_gather_object(VALUES).wait()
        sent = world().scatter_object([VALUES] * 2, 0).wait()
    return [[described(value) for value in values.values()] for values in (*gathered, sent)]


def test_values_reach_the_other_ranks(checked: str) -> None:
    wanted = [described(value) for value in pickle.loads(pickled(VALUES)).values()]
    for rank in on_ranks(_all_values, 2, checked):
        assert rank == [wanted] * 3


RAN: list[str] = []


def run(what: str) -> str:
    RAN.append(what)
    return what


class Runs:
    """An object that runs a function when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return run, ("a function",)


class Own:
    """An object that runs a function when it gets its state."""

    def __getstate__(self) -> dict[str, int]:
        return {"a": 1}

    def __setstate__(self, state: dict[str, int]) -> None:
        RAN.append("a method")


REFUSED: dict[str, tuple[Any, str]] = {
    "a function that runs": (Runs(), "test_pickling.run makes no"),
    "deep in containers": ([{"a": (1, Runs())}], "test_pickling.run makes no"),
    "in an array of objects": (np.array([Runs()], dtype=object), "test_pickling.run makes no"),
    "a module's function": (run, "test_pickling.run makes no"),
    "a partial": (functools.partial(run, "a partial"), "functools.partial makes no"),
    "an own class": (Own(), "makes no number, text, container, tensor or array"),
    "a builtin": (eval, "builtins.eval makes no"),
    "a module of torch": (torch.nn.Linear(1, 1), "makes no number"),
}


def _refused(name: str) -> Any:
    comm = world()
    with collshim.options(objects="safe"):
        outcome = attempt(comm.all_gather_object(REFUSED[name][0]).wait)
        again = comm.all_gather_object("still here").wait()
    return outcome, again, list(RAN)


@pytest.mark.parametrize("name", REFUSED)
def test_other_classes_are_refused_by_name_without_running(name: str, checked: str) -> None:
    RAN.clear()
    for outcome, again, ran in on_ranks(_refused, 2, checked, name):
        assert "CommunicationError" in outcome.raised
        assert REFUSED[name][1] in outcome.text
        assert "all_gather_object: the object that rank 0 gave cannot be unpickled here" in outcome.text
        assert (again, ran) == (["still here"] * 2, [])


COLLECTIVES: dict[str, Callable[[Communicator], Any]] = {
    "all_gather_object": lambda comm: comm.all_gather_object(1),
    "gather_object": lambda comm: comm.gather_object(1, 0),
    "broadcast_object": lambda comm: comm.broadcast_object(1, 0),
    "scatter_object": lambda comm: comm.scatter_object([1] * comm.size if comm.rank == 0 else None, 0),
    "all_to_all_object": lambda comm: comm.all_to_all_object([1] * comm.size),
    "send_object": lambda comm: comm.send_object(1, (comm.rank + 1) % comm.size),
    "recv_object": lambda comm: comm.recv_object(None),
}


def _each_refused() -> Any:
    comm = world()
    with collshim.options(objects="refuse"):
        found = {name: attempt(post, comm) for name, post in COLLECTIVES.items()}
    total = int(comm.all_reduce(np.array(1)).wait())  # no rank is a call ahead, no message is pending
    return found, total, comm.all_gather_object(comm.rank).wait()


def test_refusing_ranks_skip_collectives_of_objects(checked: str) -> None:
    for found, total, gathered in on_ranks(_each_refused, 2, checked):
        for name, outcome in found.items():
            assert outcome.raised[:1] == (ArgumentValueError.__name__,), name
            assert f"{name}: " in outcome.text
            assert "options(objects='refuse')" in outcome.text
        assert (total, gathered) == (2, [0, 1])


def test_environment_sets_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_OBJECTS", "safe")
    assert get().objects == "safe"
    monkeypatch.setenv("COLLSHIM_OBJECTS", "some")
    with pytest.raises(ArgumentValueError, match=r"option objects is 'some', should be one of \('any', 'safe'"):
        get()


@pytest.mark.parametrize("objects", ["none", "", None, True])
def test_invalid_policy_is_refused(objects: Any) -> None:
    with pytest.raises(ArgumentValueError, match="option objects is"):
        collshim.options(objects=objects).__enter__()
