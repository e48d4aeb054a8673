"""``Sequential`` (source: MegEngine 1.13.0, ``megengine.module.sequential``)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from collshim.megengine.module.module import Module


class Sequential(Module):
    """A chain of modules, each applied to the previous result; named "0", "1", ..., or by an OrderedDict's keys."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer_keys: list[str] = []
        is_named = len(args) == 1 and isinstance(args[0], OrderedDict)
        for key, module in args[0].items() if is_named else enumerate(args):
            setattr(self, str(key), module)
            self.layer_keys.append(str(key))

    @property
    def layer_values(self) -> list[Any]:
        """The modules in order."""
        return [getattr(self, key) for key in self.layer_keys]

    def forward(self, inp: Any) -> Any:
        """Return the result of the last module."""
        for layer in self.layer_values:
            inp = layer(inp)
        return inp

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(zip(self.layer_keys[idx], self.layer_values[idx], strict=True)))
        return getattr(self, self.layer_keys[idx])

    def __setitem__(self, idx: int, module: Any) -> None:
        setattr(self, self.layer_keys[idx], module)

    def __delitem__(self, idx: Any) -> None:
        for key in self.layer_keys[idx] if isinstance(idx, slice) else [self.layer_keys[idx]]:
            delattr(self, key)
        del self.layer_keys[idx]

    def __len__(self) -> int:
        return len(self.layer_keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layer_values)
