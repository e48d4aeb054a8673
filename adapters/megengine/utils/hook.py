"""``HookHandler``: a handle that removes a hook (``megengine.utils.hook``)."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import Any

_numbers = count()


class HookHandler:
    """A hook of a module; the module calls it until ``remove``."""

    def __init__(self, source_dict: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._number = next(_numbers)
        self._hooks = weakref.ref(source_dict)
        source_dict[self._number] = hook

    def remove(self) -> None:
        """Remove the hook; do nothing if it was removed already."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self._number, None)
