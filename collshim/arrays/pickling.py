"""Converts objects to bytes and back, as ``options(objects=...)`` lets a receiver restore them.

pickle runs whatever the sender chose. "safe" restores only numbers, text, containers, tensors and NumPy arrays. It
knows the few opcodes of pickle that these need, and calls nothing that the sender names: a name stands for a function
of this module or of ``packing``, which checks its arguments first. Nor can a sender change an object that it did not
make.
"""

from __future__ import annotations

import io
import pickle
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import torch

from collshim.arrays import packing
from collshim.arrays.packing import PACKED, Untrusted

Handler = Callable[[Any], None]

_CODES = (
    *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "MEMOIZE", "BINGET", "LONG_BINGET"),
    *("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "STACK_GLOBAL"),
)
"""Opcodes that pickle's protocol 5 writes for plain values, and whose standard handlers are safe."""

_DEEPEST_KEY = 100
_MOST_NESTED = 1000
_DIGITS = 4300
"""The number of digits that CPython reads from an integer's text by default."""


class _Written(bytearray):
    """Bytes to which a pickler writes; Python 3.13 and newer would report that they cannot close a BytesIO in use."""

    write = bytearray.extend


def packed(value: Untrusted) -> bytearray:
    """Return ``value`` as bytes.

    Raises:
        Exception: any exception of pickle or of the object's class if it cannot be saved.
    """
    data = _Written()
    pickler = pickle.Pickler(data, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = PACKED
    pickler.dump(value)
    return data


def restored(data: Untrusted, *, safely: bool) -> Untrusted:
    """Return the object that was packed.

    Raises:
        UnpicklingError: ``safely``, and it is or contains a value of another type than those named above.
        Exception: any exception that the object's classes raise.
    """
    return _SafeUnpickler(data).restored() if safely else pickle.loads(data)


def _refusal(what: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(
        f"{what} makes no number, text, container, tensor or array, and options(objects='safe') restores nothing else"
    )


class _Maker:
    """The stand-in for a name in a pickle: it makes a value from arguments, and cannot be used otherwise."""

    def __init__(self, make: Callable[..., Untrusted]) -> None:
        self.make = make


class _SafeUnpickler(pickle._Unpickler):  # the Python version: the one in C does not allow other opcode handlers
    dispatch: ClassVar[dict[int, Handler]] = {}
    memo: dict[int, Any]
    stack: list[Any]

    def __init__(self, data: Untrusted) -> None:
        super().__init__(io.BytesIO(data))
        self._nested: list[Any] = []

    def restored(self) -> Untrusted:
        """Return the object."""
        try:
            value = self.load()
            if isinstance(value, _Maker):
                raise _refusal("a function")
            if len(self._nested) > _MOST_NESTED:
                _require_shallow(value, _items, _MOST_NESTED)
        except BaseException:
            for one in self._nested:  # one by one: freed recursively they would overflow the C stack
                one.clear() if isinstance(one, deque) else one.fill(None)
            raise
        return value

    def find_class(self, module: str, name: str) -> Untrusted:
        """Return the object that a name stands for."""
        found = getattr(torch, name, None) if module == "torch" and name.isidentifier() else None
        if isinstance(found, torch.dtype):
            return found
        if (module, name) not in _MAKERS:
            raise _refusal(f"{module}.{name}")
        return _Maker(_MAKERS[module, name])

    def _reduce(self) -> None:
        arguments, maker = self.stack.pop(), self.stack[-1]
        if not isinstance(maker, _Maker) or type(arguments) is not tuple:
            raise _refusal(f"a call of {type(maker).__name__}")
        made = self.stack[-1] = maker.make(*arguments)
        if isinstance(made, deque) or (isinstance(made, np.ndarray) and made.dtype.hasobject):
            self._nested.append(made)

    def _bytearray(self) -> None:
        count = int.from_bytes(self.read(8), "little")  # type: ignore[attr-defined]
        data = self.read(count) if count < io.DEFAULT_BUFFER_SIZE**4 else b""  # type: ignore[attr-defined]
        if len(data) != count:
            raise pickle.UnpicklingError(f"{len(data)} bytes for {count}")
        self.stack.append(bytearray(data))

    def _append(self) -> None:
        value = self.stack.pop()
        self._last(list, deque).append(value)

    def _appends(self) -> None:
        values = self.pop_mark()  # type: ignore[attr-defined]
        self._last(list, deque).extend(values)

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._last(dict, OrderedDict, Counter)[_key(key)] = value

    def _set_items(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        self._last(dict, OrderedDict, Counter).update(zip(map(_key, items[::2]), items[1::2], strict=True))

    def _add_items(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        self._last(set).update(map(_key, items))

    def _build(self) -> None:
        """Set the attributes of an OrderedDict, such as those of a module's ``state_dict()``."""
        state, one = self.stack.pop(), self._last(OrderedDict)
        if type(state) is not dict or not all(type(name) is str and not hasattr(one, name) for name in state):
            raise _refusal(f"a state of {type(one).__name__}")
        one.__dict__.update(state)

    def _frozenset(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        self.stack.append(frozenset(map(_key, items)))

    def _last(self, *kinds: type) -> Untrusted:
        if type(self.stack[-1]) not in kinds:
            raise _refusal(f"an item of {type(self.stack[-1]).__name__}")
        return self.stack[-1]


def _handlers() -> dict[int, Handler]:
    """Return the handler of each opcode; an opcode without one is refused."""
    own = _SafeUnpickler
    handlers: dict[str, Handler] = {
        "REDUCE": own._reduce,
        "BYTEARRAY8": own._bytearray,
        "APPEND": own._append,
        "APPENDS": own._appends,
        "SETITEM": own._set_item,
        "SETITEMS": own._set_items,
        "ADDITEMS": own._add_items,
        "BUILD": own._build,
        "FROZENSET": own._frozenset,
    }
    codes: dict[int, Handler] = {code: _refuser(code) for code in range(256)}
    codes |= {_code(name): pickle._Unpickler.dispatch[_code(name)] for name in _CODES}
    return codes | {_code(name): handler for name, handler in handlers.items()}


def _refuser(code: int) -> Handler:
    def refuse(unpickler: Untrusted) -> None:
        raise _refusal(f"pickle's code {bytes([code])!r}")

    return refuse


def _code(name: str) -> int:
    return getattr(pickle, name)[0]  # type: ignore[no-any-return]


_SafeUnpickler.dispatch.update(_handlers())


def _key(key: Untrusted) -> Untrusted:
    """Return a key; refuse one with too deeply nested tuples, since hashing it would overflow the C stack."""
    if type(key) is tuple:
        _require_shallow(key, _tuples, _DEEPEST_KEY)
    return key


def _require_shallow(value: Untrusted, items: Callable[[Untrusted], Iterable[Untrusted]], most: int) -> None:
    level = [value]
    for _ in range(most):
        level = list({id(item): item for one in level for item in items(one)}.values())
        if not level:
            return
    raise pickle.UnpicklingError(f"containers within each other, deeper than {most}")


def _tuples(value: Untrusted) -> Iterable[Untrusted]:
    return [item for item in value if type(item) is tuple]


def _items(value: Untrusted) -> Iterable[Untrusted]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist() if value.dtype.hasobject else ()
    return value if isinstance(value, list | tuple | set | frozenset | deque) else ()


def _only(kind: type, *values: Untrusted) -> None:
    if not all(type(value) is kind for value in values):
        raise pickle.UnpicklingError(f"{values!r:.200}, should be of class {kind.__name__}")


def _complex(real: Untrusted, imaginary: Untrusted) -> complex:
    _only(float, real, imaginary)
    return complex(real, imaginary)


def _range(*bounds: Untrusted) -> range:
    _only(int, *bounds)
    return range(*bounds)


def _slice(*bounds: Untrusted) -> slice:
    if not all(bound is None or isinstance(bound, int | str | float | np.integer) for bound in bounds):
        raise pickle.UnpicklingError(f"bounds of a slice, {bounds!r:.200}")
    return slice(*bounds)


def _deque(values: Untrusted = (), most: Untrusted = None) -> deque[Untrusted]:
    if len(values):
        raise pickle.UnpicklingError("values of a deque before it is made")
    return deque(maxlen=most)


def _ordered() -> OrderedDict[Untrusted, Untrusted]:
    return OrderedDict()


def _counter(counts: Untrusted = None) -> Counter[Untrusted]:
    _only(dict, *([] if counts is None else [counts]))
    return Counter(counts)


def _decimal(text: Untrusted) -> Decimal:
    _only(str, text)
    return Decimal(text)


def _fraction(*parts: Untrusted) -> Fraction:
    if len(parts) == 1:  # Python 3.10
        _only(str, *parts)
        if re.fullmatch(r"-?\d+(/\d+)?", parts[0]) is None or len(parts[0]) > _DIGITS:
            raise pickle.UnpicklingError(f"a fraction of {parts[0]!r:.200}")
    else:
        _only(int, *parts)
    return Fraction(*parts)


def _moment(kind: Untrusted) -> Callable[..., Untrusted]:
    """Return a function that makes a date or time from the bytes of its state."""

    def make(state: Untrusted, zone: Untrusted = None) -> Untrusted:
        _only(bytes, state)
        if zone is not None:
            _only(timezone, zone)
        return kind(*(state,) if zone is None else (state, zone)).replace()  # which checks every number

    return make


def _difference(*parts: Untrusted) -> timedelta:
    _only(int, *parts)
    return timedelta(*parts)


def _zone(offset: Untrusted, *name: Untrusted) -> timezone:
    _only(timedelta, offset)
    _only(str, *name)
    return timezone(offset, *name)


def _size(lengths: Untrusted) -> torch.Size:
    _only(tuple, lengths)
    _only(int, *lengths)
    return torch.Size(lengths)


def _device(kind: Untrusted, *number: Untrusted) -> torch.device:
    _only(str, kind)
    _only(int, *number)
    return torch.device(kind, *number)


_MAKERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("builtins", "complex"): _complex,
    ("builtins", "range"): _range,
    ("builtins", "slice"): _slice,
    ("collections", "Counter"): _counter,
    ("collections", "OrderedDict"): _ordered,
    ("collections", "deque"): _deque,
    ("datetime", "date"): _moment(date),
    ("datetime", "datetime"): _moment(datetime),
    ("datetime", "time"): _moment(time),
    ("datetime", "timedelta"): _difference,
    ("datetime", "timezone"): _zone,
    ("decimal", "Decimal"): _decimal,
    ("fractions", "Fraction"): _fraction,
    ("torch", "Size"): _size,
    ("torch", "device"): _device,
    **{(packing.__name__, make.__name__): make for make in packing.MAKERS},
}
"""The functions that stand for the names in a pickle."""
