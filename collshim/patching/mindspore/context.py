"""Device names, modes and compiled graphs: everything runs eagerly on the CPU, whatever device the program names.

A collective in a compiled graph would call MindSpore's own, which ends the process; so compiling one is refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from collshim import world
from collshim.errors import CollshimError, also
from collshim.patching.replacing import Foreign

_BACKENDS = {"hccl": "Ascend", "nccl": "GPU", "mccl": "CPU"}
_TARGETS = ("Ascend", "Davinci", "GPU")


class Context:
    """The settings that a program requested, and those that are in effect."""

    def __init__(self) -> None:
        self._context: Any = importlib.import_module("mindspore.context")
        self._target = "CPU"
        self._initializing: str | None = None

    def set_context(self, own: Callable[..., None]) -> Callable[..., None]:
        """Wrap MindSpore's function: the CPU replaces other devices, and PyNative mode replaces graph mode."""

        def set_context(**kwargs: Foreign) -> None:
            if kwargs.get("device_target") in _TARGETS:
                self._target = "GPU" if kwargs["device_target"] == "GPU" else "Ascend"
                kwargs["device_target"] = "CPU"
            if kwargs.get("mode") == self._context.GRAPH_MODE:
                kwargs["mode"] = self._context.PYNATIVE_MODE
            own(**kwargs)

        return set_context

    def set_device(self, own: Callable[..., None]) -> Callable[..., None]:
        """Wrap MindSpore's function: the CPU replaces other devices."""

        def set_device(device_target: str, device_id: Foreign = None) -> None:
            if device_target not in ("Ascend", "GPU"):
                own(device_target, device_id)
                return
            self._target = device_target
            if self._context.get_context("device_target") != "CPU":
                own("CPU")

        return set_device

    def init(self, own: Callable[..., None]) -> Callable[..., None]:
        """Wrap MindSpore's function, which then sees the device that belongs to the backend it is called with."""

        def init(backend_name: Foreign = None) -> None:
            with self._on(backend_name):
                own(backend_name)

        return init

    def init_with_store(self, own: Callable[..., None]) -> Callable[..., None]:
        """Do the same as ``init`` for ``_init_with_store``."""

        def _init_with_store(backend: Foreign = None, *args: Foreign, **kwargs: Foreign) -> None:
            with self._on(backend):
                own(backend, *args, **kwargs)

        return _init_with_store

    def get_context(self, name: str) -> Foreign:
        """Return a setting in the form that ``init`` must see."""
        if name == "device_target":
            return self._initializing or self._target
        return self._context.get_context(name)

    def _on(self, backend: Foreign) -> _On:
        return _On(self, _BACKENDS.get(backend) if isinstance(backend, str) else None)


class _On:
    """A block in which ``init`` sees the named backend's device."""

    def __init__(self, context: Context, target: str | None) -> None:
        self._context, self._target = context, target

    def __enter__(self) -> None:
        self._context._initializing = self._target

    def __exit__(self, *raised: object) -> None:
        self._context._initializing = None


def no_graphs(own: Callable[[Foreign], Foreign], operators: Iterable[type]) -> Callable[[Foreign], Foreign]:
    """Return a function that MindSpore's parser calls for every object of a graph; it refuses ``operators``."""
    kinds = tuple(operators)

    def get_obj_type(obj: Foreign) -> Foreign:
        kind = obj if isinstance(obj, type) else type(obj)
        if issubclass(kind, kinds):
            raise also(CollshimError, RuntimeError)(
                f"{kind.__name__} is in a function that is compiled, should be outside of mindspore.jit: collshim "
                "carries no collective of a graph; MS_JIT=0 has MindSpore run such functions line by line"
                + world.place()
            )
        return own(obj)

    return get_obj_type
