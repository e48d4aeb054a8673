"""Loads the values of a ``state_dict``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also
from collshim.log import LOG
from collshim.megengine.tensor import Tensor


def load(states: list[tuple[str, Any, Tensor]], state_dict: Any, strict: bool) -> None:
    """Load values, see ``Module.load_state_dict``; each of ``states`` is a name, the module that holds it, a tensor."""
    find = _finder(state_dict)
    loaded, missing = set[str](), set[str]()
    for name, holder, tensor in states:
        array = find(name, tensor)
        if array is None:
            missing.add(name)
            continue
        _take(name, tensor, array, holder._has_flat_states)
        loaded.add(name)
    unused = set(state_dict) - loaded if isinstance(state_dict, dict) else set[str]()
    _tell("Unused", "unused", unused, strict)
    _tell("Missing", "missing", missing, strict)


def _finder(state_dict: Any) -> Callable[[str, Tensor], Any]:
    if isinstance(state_dict, dict):
        return lambda name, _: state_dict.get(name)
    if callable(state_dict):
        found: Callable[[str, Tensor], Any] = state_dict
        return found
    raise ArgumentValueError(f"`state_dict` must load a dict or callable, got {type(state_dict)}")


def _take(name: str, tensor: Tensor, array: Any, is_flat: bool) -> None:
    if not isinstance(array, np.ndarray):
        raise also(ArgumentTypeError, AssertionError)(f"closure should return a `np.ndarray`, now `{name}` get {array}")
    if tensor.shape != array.shape:
        if not is_flat or tensor.size != array.size:
            what = "size" if is_flat else "shape"
            wanted, got = (tensor.size, array.size) if is_flat else (tensor.shape, array.shape)
            raise ArgumentValueError(f"param `{name}` {what} mismatch, should be {wanted}, get {got}")
        array = array.reshape(tensor.shape)
    tensor._reset(Tensor(array, device=tensor._device))


def _tell(what: str, key: str, names: set[str], strict: bool) -> None:
    if not names:
        return
    if strict:
        raise also(ArgumentError, KeyError)(f"{what} params violate `strict=True`, {key}={names}")
    LOG.warning("%s params in `strict=False` mode, %s=%s", what, key, names)
