"""Buffers and the state of a Cell (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.parameter import Parameter

__all__ = ["Stateful"]


class _IncompatibleKeys(NamedTuple):
    """The names that ``load_state_dict`` did not find, and those that the Cell does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    def __str__(self) -> str:
        return repr(self)


class Stateful:
    """The buffers of a Cell, and its state: its parameters and the buffers that are kept."""

    _buffers: dict[str, torch.Tensor | None]
    _passing: set[str]

    def cells_and_names(self, cells: Any = None, name_prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield this Cell, and all Cells in it, with their names."""
        raise NotImplementedError

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor, or None, that is not a parameter; ``state_dict`` has it if it is ``persistent``.

        Raises:
            TypeError: ``name`` is not a string, or ``tensor`` neither a tensor nor None.
            KeyError: the name is empty, has a dot, or is taken.
        """
        if not isinstance(name, str):
            refuse(TypeError, f"register_buffer: the name should be a string, but got {type(name)}")
        if not name or "." in name:
            refuse(KeyError, f"register_buffer: the name should not be empty or have a dot, but got {name!r}")
        if name not in self._buffers and hasattr(self, name):
            refuse(KeyError, f"register_buffer: the attribute {name!r} already exists")
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            refuse(TypeError, f"register_buffer: {name!r} should be a Tensor or None, but got {type(tensor)}")
        self._buffers[name] = tensor
        (self._passing.discard if persistent else self._passing.add)(name)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the buffers of this Cell, and with ``recurse`` of all Cells in it, with their names."""
        seen: set[int] = set()
        for place, cell in self._own_cells(recurse):
            for name, buffer in cell._buffers.items():
                if buffer is not None and id(buffer) not in seen:
                    seen.update([id(buffer)] if remove_duplicate else [])
                    yield ".".join(filter(None, (prefix, place, name))), buffer

    def buffers(self, recurse: bool = True) -> Iterator[torch.Tensor]:
        """Yield the buffers of this Cell, and with ``recurse`` of all Cells in it."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _own_cells(self, recurse: bool) -> Iterator[tuple[str, Any]]:
        return self.cells_and_names() if recurse else iter([("", self)])

    def _state(self) -> Iterator[tuple[str, torch.Tensor]]:
        for place, cell in self.cells_and_names():
            buffers = {name: buffer for name, buffer in cell._buffers.items() if name not in cell._passing}
            for name, value in (*cell._params.items(), *buffers.items()):
                if value is not None:
                    yield f"{place}.{name}" if place else name, value

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return the parameters and kept buffers by name, after ``prefix``; they are the Cell's own objects."""
        found = OrderedDict() if destination is None else destination
        found.update((f"{prefix}{name}", value) for name, value in self._state())
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> _IncompatibleKeys:
        """Copy values into the parameters and kept buffers, and return the names without a counterpart.

        Raises:
            TypeError: ``state_dict`` is not a dict.
            RuntimeError: a value is not a tensor or has another shape; or, if ``strict``, names differ.
        """
        if not isinstance(state_dict, Mapping):
            refuse(TypeError, f"load_state_dict: state_dict should be a dict, but got {type(state_dict)}")
        own = dict(self._state())
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        if strict and (missing or unexpected):
            refuse(RuntimeError, f"load_state_dict: missing names: {missing}; unexpected names: {unexpected}")
        for name in own:
            if name in state_dict:
                _load(name, own[name], state_dict[name])
        return _IncompatibleKeys(missing, unexpected)


def _load(name: str, place: torch.Tensor, value: Any) -> None:
    if not isinstance(value, torch.Tensor):
        refuse(RuntimeError, f"load_state_dict: {name!r} should be a Tensor, but got {type(value)}")
    if tuple(value.shape) != tuple(place.shape):
        text = f"{name!r} has the shape {tuple(place.shape)}, but got {tuple(value.shape)}"
        refuse(RuntimeError, f"load_state_dict: {text}")
    if isinstance(place, Parameter):
        place.set_data(value)
    else:
        place.copy_(value)
