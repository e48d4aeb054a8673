"""Calls that a rank can judge alone, each with the class and text of its refusal."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from collshim import Communicator
from collshim.messages import Send
from tests.engine.foreign import Foreign
from tests.engine.worlds import Outcome, attempt, failed_anywhere

SIZE = 2


class Refusal(NamedTuple):
    """An invalid call, the class of its refusal, and parts of the text: the argument, and the expected one."""

    call: Callable[[Communicator], Any]
    kind: str
    words: tuple[str, ...]
    unchecked_alone: bool = False
    """Whether it is invalid only with the check off."""


def _read_only(shape: tuple[int, ...] = (3,)) -> Any:
    array = np.zeros(shape)
    array.flags.writeable = False
    return array


def _nested() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


_ONES = torch.ones(3)
_TAKEN, _TAKEN_BY_FOUR, _TAKEN_ARRAY = torch.zeros(3), torch.zeros(4), np.zeros((2, 2))
_NESTED = _nested()
_TYPE, _VALUE, _INDEX = "ArgumentTypeError", "ArgumentValueError", "ArgumentIndexError"
_WAY_BACK = ("Foreign", "register_kind")


def _in_splits(comm: Communicator, splits: Any, **more: Any) -> Any:
    return comm.all_to_all(_ONES, out=torch.ones(3), splits=splits, **more)


_DISCOVERING: dict[str, Callable[[Communicator], Any]] = {
    "broadcast": lambda c: c.broadcast(_ONES, discovers=1),  # type: ignore[arg-type]
    "scatter": lambda c: c.scatter([_ONES, _ONES], discovers=1),  # type: ignore[arg-type]
    "all_to_all": lambda c: c.all_to_all([_ONES, _ONES], discovers=1),  # type: ignore[arg-type]
    "send": lambda c: c.send(_ONES, 1, discovers=1),  # type: ignore[arg-type]
    "recv": lambda c: c.recv(1, discovers=1),  # type: ignore[arg-type]
}

REFUSALS: dict[str, Refusal] = {
    "no array": Refusal(lambda c: c.all_reduce(3), _TYPE, ("int", "torch tensor")),
    "a list as an array": Refusal(lambda c: c.all_reduce([1.0, 2.0]), _TYPE, ("list", "torch tensor")),
    "None as an array": Refusal(lambda c: c.all_gather(None), _TYPE, ("NoneType", "torch tensor")),
    "a dtype that torch has not": Refusal(
        lambda c: c.all_reduce(np.array(["a", "b"])), _TYPE, ("<U1", "torch can view")
    ),
    "another byte order": Refusal(
        lambda c: c.all_reduce(np.ones(3), out=np.ones(3, dtype=">f8")), _TYPE, (">f8", "torch can view")
    ),
    "a sparse tensor": Refusal(lambda c: c.all_reduce(torch.eye(2).to_sparse()), _TYPE, ("sparse", "dense")),
    "a meta tensor": Refusal(lambda c: c.all_reduce(torch.ones(3, device="meta")), _TYPE, ("meta", "memory")),
    "sparse parts": Refusal(lambda c: c.reduce_scatter(torch.eye(2).to_sparse()), _TYPE, ("sparse", "dense")),
    "meta parts": Refusal(lambda c: c.all_to_all(torch.ones(2, 3, device="meta")), _TYPE, ("meta", "memory")),
    "a meta part": Refusal(
        lambda c: c.all_to_all([torch.ones(2, device="meta")] * 2, discovers=True), _TYPE, ("meta", "memory")
    ),
    "a nested tensor": Refusal(lambda c: c.all_reduce(_NESTED), _TYPE, ("nested", "dense")),
    "a nested tensor from its root": Refusal(lambda c: c.broadcast(_NESTED), _TYPE, ("nested", "dense")),
    "a nested tensor for a rank": Refusal(lambda c: c.send(_NESTED, 1), _TYPE, ("nested", "dense")),
    "nested parts": Refusal(lambda c: c.all_to_all(_NESTED), _TYPE, ("nested", "dense")),
    "a nested output": Refusal(lambda c: c.all_gather(_ONES, out=_NESTED), _TYPE, ("output is", "nested", "dense")),
    "a foreign array without a way back": Refusal(lambda c: c.all_reduce(Foreign(np.ones(3))), _TYPE, _WAY_BACK),
    "foreign parts without a way back": Refusal(
        lambda c: c.all_to_all([Foreign(np.ones(3))] * 2, discovers=True), _TYPE, _WAY_BACK
    ),
    "an unknown reduce op": Refusal(lambda c: c.all_reduce(_ONES, "mean"), _VALUE, ("'mean'", "sum, avg")),
    "a reduce op of another type": Refusal(lambda c: c.all_reduce(_ONES, 0), _VALUE, ("0", "sum, avg")),  # type: ignore[arg-type]
    "premul_sum without a factor": Refusal(
        lambda c: c.all_reduce(_ONES, "premul_sum"), _VALUE, ("'premul_sum'", '("premul_sum", factor)')
    ),
    "a factor that is no number": Refusal(
        lambda c: c.all_reduce(_ONES, ("premul_sum", "x")),  # type: ignore[arg-type]
        _VALUE,
        ("'x'", '("premul_sum", factor)'),
    ),
    "a factor for a sum": Refusal(lambda c: c.all_reduce(_ONES, ("sum", 2.0)), _VALUE, ("('sum', 2.0)", "sum, avg")),
    "a factor beyond float64": Refusal(
        lambda c: c.all_reduce(_ONES, ("premul_sum", 10**400)), _VALUE, ("int of 1329 bits", "float64 holds")
    ),
    "a factor of integers that float64 rounds": Refusal(
        lambda c: c.all_reduce(_ONES.long(), ("premul_sum", 2**53 + 1)), _VALUE, ("9007199254740993", "for int64")
    ),
    "a factor of integers without an end": Refusal(
        lambda c: c.all_reduce(_ONES.int(), ("premul_sum", float("inf"))), _VALUE, ("factor is inf", "finite")
    ),
    "bits of floats": Refusal(lambda c: c.reduce(_ONES, 0, "band"), _VALUE, ("float32", "integers or booleans")),
    "an order of complex numbers": Refusal(lambda c: c.all_reduce(_ONES * 1j, "max"), _VALUE, ("complex64", "order")),
    "an average of booleans": Refusal(lambda c: c.all_reduce(_ONES > 0, "avg"), _VALUE, ("bool", "numbers")),
    "a sum of bits": Refusal(
        lambda c: c.all_reduce(torch.zeros(3, dtype=torch.bits8)), _VALUE, ("bits8", "arithmetic in torch")
    ),
    "a root beyond the last rank": Refusal(lambda c: c.broadcast(_ONES, 2), _INDEX, ("root is 2", "0 to 1")),
    "a negative root": Refusal(lambda c: c.reduce(_ONES, -1), _INDEX, ("root is -1", "0 to 1")),
    "a root that is no int": Refusal(lambda c: c.gather(_ONES, "0"), _TYPE, ("root is '0'", "an int")),  # type: ignore[arg-type]
    "a boolean root": Refusal(lambda c: c.scatter(None, True), _TYPE, ("root is True", "an int")),
    "a float tensor as a root": Refusal(
        lambda c: c.broadcast(_ONES, torch.tensor(1.5)),  # type: ignore[arg-type]
        _TYPE,
        ("root is tensor(1.5", "an int"),
    ),
    "a destination beyond the last rank": Refusal(lambda c: c.send(_ONES, 5), _INDEX, ("destination is 5", "0 to 1")),
    "a negative source": Refusal(lambda c: c.recv(-1, like=_ONES), _INDEX, ("source is -1", "0 to 1")),
    "parts of the wrong number": Refusal(lambda c: c.reduce_scatter(torch.ones(3, 2)), _VALUE, ("(3, 2)", "(2, ...)")),
    "parts without dimensions": Refusal(lambda c: c.all_to_all(torch.tensor(1.0)), _VALUE, ("()", "(2, ...)")),
    "splits that are no lists": Refusal(
        lambda c: _in_splits(c, (1, 2)),
        _TYPE,
        ("splits is (1, 2)", "two lists of ints"),
    ),
    "splits of the input alone": Refusal(
        lambda c: _in_splits(c, ((1, 2),)), _VALUE, ("splits is ((1, 2),)", "two lists")
    ),
    "splits of another number of ranks": Refusal(
        lambda c: _in_splits(c, ((1, 1, 1), (1, 2))),
        _VALUE,
        ("length of input splits list is 3", "2, one per rank"),
    ),
    "splits of another length": Refusal(
        lambda c: _in_splits(c, ((1, 2), (1, 1))),
        _VALUE,
        ("splits of the output is [1, 1]", "3 in all"),
    ),
    "a negative split": Refusal(
        lambda c: _in_splits(c, ((-1, 4), (1, 2))),
        _VALUE,
        ("splits of the input is [-1, 4]", "0 or"),
    ),
    "splits beside shapes": Refusal(
        lambda c: _in_splits(c, ((1, 2), (1, 2)), shapes=[(1,), (2,)]),
        _VALUE,
        ("splits is passed with shapes", "alone"),
    ),
    "splits without an output": Refusal(
        lambda c: c.all_to_all(_ONES, splits=((1, 2), (1, 2))), _TYPE, ("output is", "NoneType", "torch tensor")
    ),
    "splits into a read-only output": Refusal(
        lambda c: c.all_to_all(np.ones(3), out=_read_only(), splits=((1, 2), (1, 2))), _VALUE, ("read-only", "writable")
    ),
    "parts end to end without an output": Refusal(
        lambda c: c.reduce_scatter(torch.ones(4)), _VALUE, ("(4,)", "(2, ...)")
    ),
    "a short list of parts": Refusal(
        lambda c: c.scatter([_ONES], 0), _VALUE, ("length of input list is 1", "2, one per rank")
    ),
    "an empty list of parts": Refusal(
        lambda c: c.all_to_all([]), _VALUE, ("length of input list is 0", "2, one per rank")
    ),
    "no parts on the root": Refusal(lambda c: c.scatter(None, 0), _TYPE, ("NoneType", "torch tensor")),
    "parts of two dtypes": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES.double()], discovers=True),
        _TYPE,
        ("input[1] is float64", "float32 as input[0]"),
    ),
    "a part that is no array": Refusal(
        lambda c: c.reduce_scatter([_ONES, 5]), _TYPE, ("input[1] is", "int", "torch tensor")
    ),
    "an output of another shape": Refusal(
        lambda c: c.all_reduce(_ONES, out=torch.ones(4)), _VALUE, ("shape of output is (4,)", "(3,)")
    ),
    "an output of as many elements": Refusal(
        lambda c: c.all_gather(_ONES, out=torch.ones(3, 2)), _VALUE, ("shape of output is (3, 2)", "(2, 3)")
    ),
    "an output of another dtype": Refusal(
        lambda c: c.all_reduce(_ONES, out=_ONES.double()), _TYPE, ("dtype of output is float64", "float32")
    ),
    "a read-only output": Refusal(
        lambda c: c.all_reduce(np.ones(3), out=_read_only()), _VALUE, ("read-only", "writable")
    ),
    "an output with negative strides": Refusal(
        lambda c: c.all_reduce(np.ones(3), out=np.ones(3)[::-1]), _VALUE, ("negative strides (-8,)",)
    ),
    "a broadcast output": Refusal(
        lambda c: c.all_reduce(np.ones(3), out=np.lib.stride_tricks.as_strided(np.ones(1), (3,), (0,))),
        _VALUE,
        ("broadcast", "own its memory"),
    ),
    "an expanded output": Refusal(
        lambda c: c.all_reduce(_ONES, out=torch.ones(1).expand(3)), _VALUE, ("expanded", "of its own")
    ),
    "a NumPy output whose elements overlap": Refusal(
        lambda c: c.all_reduce(np.ones((3, 3)), out=np.lib.stride_tricks.as_strided(np.ones(5), (3, 3), (8, 8))),
        _VALUE,
        ("overlap", "strides (8, 8)", "own its memory"),
    ),
    "an output twice in a list": Refusal(
        lambda c: c.all_gather(_ONES, out=[_TAKEN, _TAKEN]),
        _VALUE,
        ("memory of output[1] is shared with output[0]", "its own"),
    ),
    "an output twice in the root's list": Refusal(
        lambda c: c.gather(_ONES, 0, out=[_TAKEN, _TAKEN]), _VALUE, ("output[1] is shared with output[0]",)
    ),
    "outputs that overlap": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES], out=[_TAKEN_BY_FOUR[1:], _TAKEN_BY_FOUR[:3]]),
        _VALUE,
        ("output[1] is shared with output[0]",),
    ),
    "NumPy outputs that overlap": Refusal(
        lambda c: c.all_gather(np.ones((2, 2)), out=[_TAKEN_ARRAY[:2], _TAKEN_ARRAY.T[:2]]),
        _VALUE,
        ("output[1] is shared with output[0]",),
    ),
    "an output whose elements overlap": Refusal(
        lambda c: c.all_reduce(torch.ones(2, 2), out=torch.ones(3).as_strided((2, 2), (1, 1))),
        _VALUE,
        ("share memory", "of its own"),
    ),
    "a scalar as an output": Refusal(
        lambda c: c.all_reduce(np.float64(1), out=np.float64(1)), _TYPE, ("NumPy scalar", "written")
    ),
    "a short list of outputs": Refusal(
        lambda c: c.all_gather(_ONES, out=[torch.ones(3)]), _VALUE, ("length of output list is 1", "2, one per")
    ),
    "an output list with a read-only array": Refusal(
        lambda c: c.all_gather(np.ones(3), out=[np.ones(3), _read_only()]), _VALUE, ("read-only", "writable")
    ),
    "an own output of another shape": Refusal(
        lambda c: c.all_gather(_ONES, out=[torch.ones(2), torch.ones(3)]), _VALUE, ("output[0]", "(2,)", "(3,)")
    ),
    "a scattered output of another shape": Refusal(
        lambda c: c.scatter(torch.ones(2, 3), 0, out=torch.ones(2)), _VALUE, ("(2,)", "(3,)")
    ),
    "a recv into read-only memory": Refusal(lambda c: c.recv(1, out=_read_only()), _VALUE, ("read-only", "writable")),
    "an unknown shape": Refusal(lambda c: c.recv(1), _VALUE, ("unknown", "discovers=True"), True),
    "an unknown broadcast": Refusal(lambda c: c.broadcast(None, 1), _VALUE, ("unknown", "discovers=True"), True),
    "an unknown scatter": Refusal(lambda c: c.scatter(None, 1), _VALUE, ("unknown", "discovers=True"), True),
    "unequal scattered parts": Refusal(
        lambda c: c.scatter([_ONES, _ONES[:1]], 0), _VALUE, ("unknown", "discovers=True"), True
    ),
    "unequal exchanged parts": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES[:1]]), _VALUE, ("unknown", "discovers=True"), True
    ),
    "a shape for a list of shapes": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES], shapes=5),  # type: ignore[arg-type]
        _TYPE,
        ("shapes is 5", "2 shapes of ints"),
    ),
    "lengths for a list of shapes": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES], shapes=[3, 3]),  # type: ignore[list-item]
        _TYPE,
        ("shapes is [3, 3]", "2 shapes of ints"),
    ),
    "a shape of letters": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES], shapes=[(3,), ("a",)]),  # type: ignore[list-item]
        _TYPE,
        ("('a',)", "2 shapes of ints"),
    ),
    "a negative length": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES], shapes=[(3,), (-1,)]), _VALUE, ("(-1,)", "from 0")
    ),
    "too few shapes": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES], shapes=[(3,)]), _VALUE, ("length of shapes is 1", "2, one per rank")
    ),
    "another shape for the own part": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES], shapes=[(2,), (3,)]),
        _VALUE,
        ("shape of shapes[0] is (2,)", "(3,) as input[0]"),
        True,
    ),
    "an output of another shape for the own part": Refusal(
        lambda c: c.all_to_all([_ONES, _ONES], out=[torch.ones(2), torch.ones(3)]),
        _VALUE,
        ("shape of output[0] is (2,)", "(3,) as input[0]"),
        True,
    ),
    **{
        f"{op} that may be discovered": Refusal(call, _TYPE, (f"{op}: discovers is 1", "True or False"))
        for op, call in _DISCOVERING.items()
    },
    "a batch that is no list": Refusal(lambda c: c.batch(1), _TYPE, ("batch", "is int", "Send and Recv")),  # type: ignore[arg-type]
    "a batch of something else": Refusal(
        lambda c: c.batch([Send(_ONES, 1), _ONES]),  # type: ignore[list-item]
        _TYPE,
        ("message is Tensor", "a Send or a Recv"),
    ),
    "an empty subgroup": Refusal(lambda c: c.subgroup([]), _VALUE, ("[]", "each once")),
    "a rank twice in a subgroup": Refusal(lambda c: c.subgroup([0, 0]), _VALUE, ("[0, 0]", "each once")),
    "a stranger in a subgroup": Refusal(lambda c: c.subgroup([0, 2]), _INDEX, ("rank is 2", "0 to 1")),
}

if hasattr(torch, "float8_e8m0fnu"):  # torch 2.7
    _EXPONENTS = _ONES.to(torch.float8_e8m0fnu)
    REFUSALS["a sum of exponents"] = Refusal(lambda c: c.all_reduce(_EXPONENTS), _VALUE, ("float8_e8m0fnu",))

if hasattr(torch, "uint4"):  # torch 2.7
    _HALVES = torch.zeros(3, dtype=torch.uint8).view(getattr(torch, "uint4"))  # noqa: B009 - its stubs lack it
    REFUSALS["parts of bytes"] = Refusal(lambda c: c.broadcast(_HALVES), _TYPE, ("uint4", "dense"))


def scenario(name: str, world: Communicator) -> Any:
    """Rank 0 makes the invalid call, catches the refusal, and then makes a valid one with the others."""
    comm = world.subgroup([0, 1])
    assert comm is not None
    try:
        return _refused_and_then(name, comm)
    finally:
        comm.close()


def _refused_and_then(name: str, comm: Communicator) -> Any:
    refused = attempt(REFUSALS[name].call, comm)._replace(value=None) if comm.rank == 0 else Outcome()
    if failed_anywhere(comm.rank == 0 and not refused.raised):
        return refused, "not refused"
    right = comm.all_gather(torch.tensor([comm.rank])).wait().tolist()
    group = comm.subgroup([1, 0])
    assert group is not None
    after = comm.reduce_scatter(torch.tensor([[1.0], [2.0]])).wait().tolist()  # type: ignore[var-annotated]
    group.close()
    return refused, right, after, group.rank
