"""Forged bytes: the safe unpickler refuses them or makes values, and nothing else happens."""

from __future__ import annotations

import collections
import decimal
import fractions
import pickle
import random
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torch._utils as torch_utils

from collshim.arrays import packing
from collshim.arrays.pickling import restored
from collshim.conformance.effort import THOROUGH
from tests.engine.test_pickling import GRID, VALUES, described, pickled

MUTATIONS = 300_000 if THOROUGH else 4_000
NO_FLAGS = (False, False, False)


class Called:
    """An object pickled as a call of a function, and a state."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], *state: Any) -> None:
        self.parts = (function, arguments, *state)

    def __reduce__(self) -> Any:
        return self.parts


def call(function: Any, *arguments: Any) -> bytes:
    return pickled(Called(function, arguments))


def array(description: Any, shape: Any, data: Any) -> bytes:
    return call(packing.array_of, description, shape, False, data)


def tensor(name: Any, shape: Any, data: Any, order: Any = (0,), device: Any = "cpu", flags: Any = NO_FLAGS) -> bytes:
    return call(packing.tensor_of, name, shape, order, data, device, flags)


def changed(module: str, name: str) -> bytes:
    """Return the class or function itself, with a state to set."""
    text = pickle.dumps((None, {"changed": 1}), 2)[2:-1]
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + text + b"b."


def within(depth: int, opening: bytes, closing: bytes) -> bytes:
    return b"\x80\x05" + opening * depth + closing * depth + b"."


def named(module: str, name: str) -> bytes:
    """Return the opcodes of a global."""
    parts = [b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name)]
    return b"".join(parts) + b"\x93"


def arrays_within(depth: int) -> bytes:
    """Return the opcodes of arrays of objects, each the value of the next."""
    make = named("collshim.arrays.packing", "object_array_of") + b"(\x8c\x02|OK\x01\x85\x89C\x01\0tR"
    fill = named("collshim.arrays.packing", "fill")
    codes = [b"\x80\x05N"]
    for place in range(0, 2 * depth, 2):
        value, outer = (b"j" + number.to_bytes(4, "little") for number in (place, place + 1))
        codes += [b"\x940", make, b"\x94", fill, outer, b"]", value, b"a\x86R0"]
    return b"".join([*codes, b"."])


_DEQUE = named("collections", "deque") + b")R"
_SLICE = named("builtins", "slice")
_OBJECTS: Any = np.array([None], dtype=object)
_RECONSTRUCT = GRID.transpose(0, 2, 1)[::2].__reduce__()[0]
_STORAGE: Any = torch.ones(2)._typed_storage()


def dtypes_within(depth: int) -> Any:
    found: Any = "<f8"
    for _ in range(depth):
        found = "several", found, (1,)
    return found


def _field(part: Any, offset: int, size: int) -> Any:
    return "fields", [("a", None, part, offset)], size, False


FORGED: dict[str, bytes] = {
    "a function alone": pickled(packing.array_of),
    "a class that is changed": changed("fractions", "Fraction"),
    "a function that is changed": changed("collshim.arrays.packing", "array_of"),
    "a list with a state": pickled(Called(collections.deque, ([1],), {"changed": 1})),
    "a dict with a method": pickled(Called(collections.OrderedDict, (), {"keys": 1})),
    "a dict with a state of no dict": pickled(Called(collections.OrderedDict, (), [1])),
    "a function through a dot": b"\x80\x04\x8c\x05torch\x8c\x09nn.Linear\x93.",
    "a function through a module": b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00truetR.",
    "a function of this library's": pickled(packing.described_dtype),
    "a persistent id": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "NumPy's own array": call(_RECONSTRUCT, np.ndarray, (0,), b"b"),
    "torch's own tensor": call(torch_utils._rebuild_tensor_v2, _STORAGE, 0, (2,), (1,), True, {}),
    "a call of a value": pickled([1])[:-1] + b")R.",
    "an item of a tuple": b"\x80\x05)K\x01a.",
    "an item of an array": pickled(_OBJECTS)[:-1] + b"K\x01a.",
    "a longer array than its bytes": array("<i8", (1000,), bytes(8)),
    "a shorter array than its bytes": array("<i8", (1,), bytes(16)),
    "an array of a negative length": array("<i8", (-1,), bytes(8)),
    "an array of very many": array("<i8", (1 << 61,), bytes(8)),
    "an array of too many dimensions": array("<i8", (1,) * 100, bytes(8)),
    "an array of a shape that is no tuple": array("<i8", [1], bytes(8)),
    "an array of a list": array("<i8", (1,), [0] * 8),
    "an array of another array": array("<i8", (1,), np.zeros(8, np.uint8)),
    "characters that do not exist": array("<U1", (1,), b"\xff" * 4),
    "such characters in a field": array(_field("<U1", 1, 6), (1,), b"\xff" * 6),
    "bytes as the addresses of objects": array("|O", (1,), b"\1" * 8),
    "such addresses in a field": array(_field("|O", 0, 8), (1,), b"\1" * 8),
    "such addresses in a part": array(("several", "|O", (1,)), (1,), b"\1" * 8),
    "a scalar of an address": call(packing.scalar_of, "|O", b"\1" * 8),
    "a scalar of too few bytes": call(packing.scalar_of, "<f8", b"\1" * 4),
    "a field beyond its dtype": call(packing.dtype_of, _field("<i8", 10**6, 16)),
    "a field before its dtype": call(packing.dtype_of, _field("<i8", -8, 16)),
    "a field over an object": call(
        packing.dtype_of, ("fields", [("a", None, "|O", 0), ("b", None, "<i8", 0)], 8, False)
    ),
    "a dtype of no text": call(packing.dtype_of, "i4,i4"),
    "a dtype of a class": call(packing.dtype_of, 3),
    "a dtype of very many": call(packing.dtype_of, ("several", "<f8", (1 << 40, 1 << 40))),
    "dtypes within each other": call(packing.dtype_of, dtypes_within(40)),
    "objects of no place": call(packing.object_array_of, "|O", (1 << 30,), False, b""),
    "objects of parts of no place": call(packing.object_array_of, ("several", "|O", (1000,)), (1,), False, b"\0"),
    "objects that are numbers": call(packing.object_array_of, "<f8", (1,), False, b"\0"),
    "fewer objects than elements": pickled(Called(packing.object_array_of, ("|O", (2,), False, bytes(2)), [1], None)),
    "objects into an array of numbers": call(packing.fill, np.zeros(2), [1, 2]),
    "objects into a list": call(packing.fill, [1, 2], [1, 2]),
    "fewer objects into an array": call(packing.fill, _OBJECTS, []),
    "a longer tensor than its bytes": tensor("float32", (1000,), bytes(4)),
    "a tensor of a negative length": tensor("float32", (-1,), bytes(4)),
    "a tensor of very many": tensor("float32", (1 << 62,), bytes(4)),
    "a tensor of more than there can be": tensor("float32", (1 << 70, 0), b"", (0, 1)),
    "a tensor in no order": tensor("float32", (1, 1), bytes(4), (0, 0)),
    "a tensor of a function": tensor("add", (1,), bytes(4)),
    "a tensor of a quantized dtype": tensor("quint8", (1,), bytes(1)),
    "a tensor on a device to be imported": tensor("float32", (1,), bytes(4), device="hpu"),
    "a tensor on a GPU that is not there": tensor("float32", (1,), bytes(4), device="cuda:99"),
    "a gradient of integers": tensor("int64", (1,), bytes(8), flags=(True, False, False)),
    "a parameter of no tensor": call(packing.parameter_of, [1.0], True),
    "a UUID of text": call(packing.uuid_of, "0"),
    "a fraction of no digits": call(fractions.Fraction, "1e999999999"),
    "a fraction of very many digits": call(fractions.Fraction, "9" * 100_000),
    "a number of a list": call(decimal.Decimal, [1]),
    "a deque of values": call(collections.deque, [1]),
    "keys within each other": b"\x80\x05}" + within(100_000, b"(", b"t")[2:-1] + b"Ns.",
    "slices within each other": within(100_000, _SLICE + b"(", b"tR"),
    "arrays within each other": arrays_within(100_000),
    "deques within each other": b"\x80\x05N" + within(100_000, _DEQUE, b"a")[2:],
    "bytes that do not follow": b"\x80\x05\x96" + b"\xff" * 7 + b"\x7f" + b"a.",
    "text that does not follow": b"\x80\x05\x8d" + b"\xff" * 7 + b"\x7f" + b"a.",
    "a code that does not exist": b"\x80\x05\xff.",
    "nothing": b"",
}

REFUSALS = (pickle.UnpicklingError, EOFError, TypeError, ValueError, RuntimeError, OverflowError)


@pytest.mark.parametrize("name", FORGED)
def test_forged_pickle_is_refused(name: str) -> None:
    modules = set(sys.modules)
    with pytest.raises(REFUSALS):
        restored(FORGED[name], safely=True)
    assert set(sys.modules) == modules
    assert not hasattr(fractions.Fraction, "changed")
    assert not hasattr(packing.array_of, "changed")


def test_a_few_arrays_can_be_nested() -> None:
    assert restored(arrays_within(2), safely=True)[0].tolist() == [None]


def test_arrays_of_equal_bytes_share_no_memory() -> None:
    data = bytearray(8)
    forged = pickled([data, *(Called(packing.array_of, ("<i8", (1,), False, data)) for _ in range(2))])
    found, *arrays = restored(forged, safely=True)
    found.extend(b"\0" * 1000)
    assert not np.shares_memory(*arrays)


def test_every_boolean_is_0_or_1() -> None:
    both = "fields", [("a", None, "|b1", 0), ("b", None, ("several", "|b1", (2,)), 1)], 3, False
    assert restored(array("|b1", (2,), b"\7\0"), safely=True).sum() == 1
    assert restored(array(both, (1,), b"\7\2\0"), safely=True)["b"].sum() == 1
    assert restored(tensor("bool", (2,), b"\7\0"), safely=True).sum() == 1


def _mutated(data: bytes, draw: random.Random) -> bytes:
    """Return ``data`` with a few bytes changed, inserted, removed, or taken from elsewhere."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        start, other = draw.randrange(len(found) + 1), draw.choice(SEEDS)
        begin = draw.randrange(len(other))
        part = draw.choice((draw.choice(PIECES), other[begin : begin + draw.randrange(60)]))
        found[start : start + draw.choice((0, 0, 1, len(part)))] = draw.choice((part, bytes([draw.randrange(256)])))
    return bytes(found)


CODES = [code for name in vars(pickle) if name.isupper() and isinstance(code := getattr(pickle, name), bytes)]
PIECES = [
    *CODES,
    *(named("collshim.arrays.packing", make.__name__) for make in packing.MAKERS),
    *(
        named("collections", "deque"),
        named("datetime", "datetime"),
        named("torch", "float32"),
        b"\x85R",
        b"h\1",
        b"J\xff\xff\xff\x7f",
    ),
]
SEEDS = [
    *map(pickled, VALUES.values()),
    pickled([*VALUES.values()][:8]),
    *(one for one in FORGED.values() if 0 < len(one) < 1000),
]


def test_mutated_pickles_are_refused_or_restored() -> None:
    draw = random.Random(None if THOROUGH else 1)
    kinds: collections.Counter[str] = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        repr(torch.ones(1))  # torch imports a module at the first of these
        modules = set(sys.modules)
        for _ in range(MUTATIONS):
            kinds[_outcome(_mutated(draw.choice(SEEDS), draw))] += 1
    assert set(sys.modules) == modules
    assert kinds["a value"] > MUTATIONS // 50
    assert kinds["UnpicklingError"] > MUTATIONS // 100
    assert "SystemError" not in kinds


def _outcome(data: bytes) -> str:
    try:
        repr(described(restored(data, safely=True)))
    except Exception as error:
        return type(error).__name__
    return "a value"
