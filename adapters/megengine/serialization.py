"""``save`` and ``load``: pickle (MegEngine 1.13.0, ``megengine.serialization``)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from collshim.errors import ArgumentTypeError
from collshim.megengine.tensor import Tensor

__all__ = ["load", "save"]


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = pickle.DEFAULT_PROTOCOL) -> None:
    """Pickle an object to a file; ``f`` is its name or an open file."""
    if isinstance(f, str):
        with open(f, "wb") as file:
            pickle_module.dump(obj, file, pickle_protocol)
        return
    pickle_module.dump(obj, f, pickle_protocol)


def load(f: Any, map_location: Any = None, pickle_module: Any = pickle) -> Any:
    """Return an object that ``save`` wrote; unpickling executes code from the file.

    Args:
        f: the file's name, or an open file.
        map_location: the name of the device for tensors, or a dictionary or function from old to new names; None for
            the devices that the tensors were on.
        pickle_module: the module that reads the file.
    """
    if isinstance(f, str):
        with open(f, "rb") as file:
            return _placed(pickle_module.load(file), map_location)
    return _placed(pickle_module.load(f), map_location)


def _placed(found: Any, map_location: Any) -> Any:
    if map_location is None:
        return found
    place = _mapping(map_location)
    if isinstance(found, Tensor):
        found._reset(found.to(place(str(found.device))))
    elif isinstance(found, dict):
        return type(found)((key, _placed(part, map_location)) for key, part in found.items())
    elif type(found) in (list, tuple):
        return type(found)(_placed(part, map_location) for part in found)
    return found


def _mapping(map_location: Any) -> Callable[[str], str]:
    if isinstance(map_location, str):
        return lambda name: map_location
    if isinstance(map_location, dict):
        return lambda name: next((new for old, new in map_location.items() if name.startswith(old)), name)
    if not callable(map_location):
        raise ArgumentTypeError(f"map_location is {map_location!r}, should be a name, a dictionary or a function")
    found: Any = map_location
    return found  # type: ignore[no-any-return]
