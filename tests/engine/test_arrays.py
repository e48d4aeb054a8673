"""Arrays of any kind as torch tensors and back, in the same memory if possible."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from collshim import ArgumentError, ArgumentTypeError, ArgumentValueError
from collshim.arrays import as_output, as_torch, is_array, like
from tests.engine.foreign import Bare, Foreign, Old, Standard, Unsigned

NUMPY_DTYPES = [
    "bool",
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
EIGHT_BITS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")  # not all in 2.6
MACHINE_LEARNING_DTYPES = ["bfloat16", *(name for name in EIGHT_BITS if hasattr(torch, name))]


def numbers(dtype: Any = np.float64, shape: tuple[int, ...] = (2, 3)) -> np.ndarray[Any, Any]:
    return (np.arange(int(np.prod(shape))) % 2 + 1).astype(dtype).reshape(shape)


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def back(given: Any, result: torch.Tensor) -> Any:
    """Convert a result for the caller of a collective."""
    convert = like(given)
    return result if convert is None else convert(result)


TENSORS = {
    "contiguous": torch.ones(2, 3),
    "transposed": torch.ones(2, 3).t(),
    "strided": torch.ones(4, 4)[::2, 1::2],
    "expanded": torch.ones(1).expand(4),
    "0-d": torch.tensor(1.0),
    "empty": torch.ones(0, 3),
    "that requires a gradient": torch.ones(2, requires_grad=True),
    "conjugated": torch.ones(2, dtype=torch.complex64).conj(),
    "a parameter": torch.nn.Parameter(torch.ones(2)),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_torch_tensor_is_itself(tensor: torch.Tensor) -> None:
    assert as_torch(tensor) is tensor
    assert like(tensor) is None


@pytest.mark.parametrize("name", [name for name in TENSORS if name != "expanded"])
def test_torch_tensor_is_its_own_output(name: str) -> None:
    assert as_output(TENSORS[name]) is TENSORS[name]


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_memory_is_shared_both_ways(dtype: str) -> None:
    array = numbers(dtype)
    tensor = as_torch(array)
    assert (str(tensor.dtype), tuple(tensor.shape)) == (f"torch.{dtype}", (2, 3))
    assert tensor.data_ptr() == address(array) == as_output(array).data_ptr()
    result = back(array, tensor)
    assert type(result) is np.ndarray
    assert (result.dtype, address(result)) == (array.dtype, address(array))
    assert np.array_equal(result, array)


@pytest.mark.parametrize("name", MACHINE_LEARNING_DTYPES)
def test_ml_dtypes_are_shared_both_ways(name: str) -> None:
    array = numbers(getattr(ml_dtypes, name))
    tensor = as_torch(array)
    assert str(tensor.dtype) == f"torch.{name}"
    assert tensor.data_ptr() == address(array) == as_output(array).data_ptr()
    assert tensor.float().tolist() == array.astype(np.float32).tolist()
    result = back(array, tensor)
    assert (result.dtype, address(result)) == (array.dtype, address(array))


@pytest.mark.parametrize("name", MACHINE_LEARNING_DTYPES)
def test_ml_dtypes_can_be_strided_or_0d(name: str) -> None:
    array = numbers(getattr(ml_dtypes, name), (4, 4))
    for view in (array.T, array[::2, 1::2], array[1, 1].reshape(()), array[:0]):
        assert as_torch(view).float().tolist() == view.astype(np.float32).tolist()


class Subclass(np.ndarray[Any, Any]):
    """A subclass of ndarray."""


VIEWS: dict[str, Any] = {
    "Fortran order": lambda: np.asfortranarray(numbers()),
    "transposed": lambda: numbers().T,
    "every second": lambda: numbers(shape=(4, 6))[::2, ::3],
    "0-stride": lambda: np.lib.stride_tricks.as_strided(np.ones(1), (4,), (0,)),
    "0-d": lambda: np.array(3.0),
    "empty": lambda: np.ones((0, 3)),
    "a field of a structure": lambda: np.ones(3, dtype=[("a", "f8"), ("b", "f8")])["b"],
    "a subclass": lambda: numbers().view(Subclass),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_numpy_views_are_read_in_place(view: Any) -> None:
    array = view()
    tensor = as_torch(array)
    assert tensor.tolist() == array.tolist()
    assert array.size == 0 or tensor.data_ptr() == address(array)


COPIED: dict[str, Any] = {
    "negative strides": lambda: numbers()[::-1, ::-1],
    "read-only": lambda: _read_only(numbers()),
    "read-only with negative strides": lambda: _read_only(numbers())[::-1],
    "a field of a record": lambda: _records()["b"],
    "a field of one record": lambda: _records()[:1]["b"],
    "a field of no record": lambda: _records()[:0]["b"],
    "other byte order": lambda: numbers().astype(">f8"),
    "broadcast": lambda: np.broadcast_to(numbers(), (2, 2, 3)),
    "a scalar": lambda: np.float64(2.5),
    "a boolean scalar": lambda: np.bool_(True),
    "a bfloat16 scalar": lambda: ml_dtypes.bfloat16(2.5),
}


def _records() -> np.ndarray[Any, Any]:
    return np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")])


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("view", COPIED.values(), ids=COPIED)
def test_arrays_unsupported_by_torch_are_copied(view: Any) -> None:
    array = view()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = as_torch(array)
    assert tensor.tolist() == np.asarray(array).astype(object).tolist()
    tensor.fill_(9)
    assert np.asarray(array).astype(object).tolist() == np.asarray(view()).astype(object).tolist()


def test_result_has_the_byte_order_of_its_input() -> None:
    given = numbers().astype(">f8")
    result = back(given, as_torch(given))
    assert (result.dtype, result.tolist()) == (given.dtype, given.tolist())


@pytest.mark.parametrize("given", [np.float32(1), np.bool_(1), np.int8(1), ml_dtypes.bfloat16(1)], ids=repr)
def test_numpy_scalar_returns_an_array(given: Any) -> None:
    result = back(given, as_torch(given))
    assert (type(result), result.shape, result.dtype) == (np.ndarray, (), given.dtype)


REFUSED_OUTPUTS = {
    "0-stride": (VIEWS["0-stride"], ArgumentValueError, "broadcast"),
    "an overlapping tensor": (
        lambda: torch.ones(3).as_strided((2, 2), (1, 1)),
        ArgumentValueError,
        "share memory",
    ),
    "a field of a record": (lambda: _records()["b"], ArgumentTypeError, r"strides \(12,\)"),
    "a field of one record": (lambda: _records()[:1]["b"], ArgumentTypeError, r"strides \(12,\)"),
    "other byte order": (lambda: numbers().astype(">f8"), ArgumentTypeError, "dtype >f8"),
    "a list": (lambda: [1.0], ArgumentTypeError, "builtins.list"),
    # NumPy before 2.1 does not export read-only memory at all
    "a foreign read-only array": (lambda: Foreign(_read_only(numbers())), ArgumentError, "read-?only"),
}


@pytest.mark.parametrize(("view", "kind", "words"), REFUSED_OUTPUTS.values(), ids=REFUSED_OUTPUTS)
def test_read_only_memory_is_not_an_output(view: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        as_output(view())


@pytest.mark.parametrize("array", [np.ones(1), np.array(1.0), np.ones((0, 3)), np.ones((1, 3))[:, :1]])
def test_small_arrays_are_outputs(array: np.ndarray[Any, Any]) -> None:
    as_output(array).fill_(5)
    assert (array == 5).all()


UNKNOWN = {
    "int": (3, "builtins.int"),
    "objects": (np.array([object()]), "object"),
    "structures": (np.zeros(2, dtype=[("a", "f4")]), r"\('a', '<f4'\)"),
    "dates": (np.zeros(2, dtype="M8[s]"), "datetime64"),
    "long doubles": (np.zeros(2, dtype=np.longdouble), "float128|longdouble"),
    "no bytes": (np.zeros(2, "V0"), "V0"),
    "no device": (type("Half", (), {"__dlpack__": lambda self: None})(), "__dlpack_device__"),
}


@pytest.mark.parametrize(("value", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_non_array_is_refused_with_its_type(value: Any, words: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"^weights is .*({words})"):
        as_torch(value, what="weights")


@pytest.mark.parametrize("kind", [Foreign, Unsigned])
def test_foreign_array_with_negative_strides_is_refused(kind: type[Foreign]) -> None:
    """torch would end the process."""
    for array, strides in ((np.arange(3.0)[::-1], (-1,)), (numbers()[:, ::-2], (3, -2))):
        with pytest.raises(ArgumentValueError, match=re.escape(f"{strides}, none may be negative")):
            as_torch(kind(array))


def test_arrays_are_recognized() -> None:
    arrays = [torch.ones(1), np.ones(1), np.float64(1), Foreign(np.ones(1))]
    assert all(is_array(value) for value in arrays)
    assert not any(is_array(value) for value in (1.0, [1.0], None, "abc", np.float64))


@pytest.mark.parametrize("kind", [Standard, Bare])
def test_foreign_memory_is_shared_both_ways(kind: type[Foreign]) -> None:
    given = kind(numbers())
    tensor = as_torch(given)
    assert tensor.data_ptr() == address(given.array) == as_output(given).data_ptr()
    result = back(given, tensor)
    assert type(result) is kind
    assert address(result.array) == address(given.array)


def test_old_dlpack_is_accepted() -> None:
    given = Old(numbers())
    assert as_torch(given).data_ptr() == address(given.array)


def test_subclass_of_a_registered_type_is_returned() -> None:
    class Special(Bare):
        pass

    assert type(back(Special(numbers()), torch.ones(2))) is Bare


def test_unregistered_array_error_explains_how_to_register() -> None:
    assert as_torch(Foreign(numbers())).shape == (2, 3)
    with pytest.raises(ArgumentTypeError, match=r"Foreign, which cannot be made from a torch tensor.*register_kind"):
        like(Foreign(numbers()))


def test_results_come_back_without_requires_grad() -> None:
    result = torch.ones(2, requires_grad=True) * 2
    assert back(np.ones(2), result).tolist() == [2, 2]
    assert back(Standard(np.ones(2)), result).array.tolist() == [2, 2]


def test_conjugated_results_come_back_resolved() -> None:
    result = torch.tensor([1 + 2j]).conj()
    assert back(np.ones(1), result).tolist() == [1 - 2j]
    assert back(np.ones(1), result.imag).tolist() == [-2]


@pytest.mark.processes
@pytest.mark.parametrize("attribute", ["with", "without"])
def test_negative_strides_of_a_foreign_array_are_survived(attribute: str) -> None:
    """Run in a separate process: torch's reader would end it."""
    code = f"""
import numpy as np
from collshim.arrays import as_torch
from collshim.errors import ArgumentError
from tests.engine.foreign import Foreign
given = Foreign(np.arange(3.0)[::-1])
if {attribute == "with"}:
    given.strides = given.array.strides
try:
    print(as_torch(given).tolist())
except ArgumentError as error:
    print("refused", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith(("refused", "[2.0, 1.0, 0.0]"))


def test_cupy_is_not_imported() -> None:
    as_torch(np.ones(2))
    assert "cupy" not in sys.modules
