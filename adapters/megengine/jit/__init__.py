"""``megengine.jit``: functions run without being traced (source: MegEngine 1.13.0, ``megengine.jit.tracing``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from collshim.adapting.absent import saying
from collshim.errors import CollshimError, also
from collshim.megengine.core._trace_option import set_symbolic_shape

__all__ = [
    "DTRConfig",
    "GraphOptimizationConfig",
    "SublinearMemoryConfig",
    "exclude_from_trace",
    "set_symbolic_shape",
    "trace",
]


class SublinearMemoryConfig:
    """Settings for ``trace``, which ignores them."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


class DTRConfig(SublinearMemoryConfig):
    """Settings for ``trace``, which ignores them."""


class GraphOptimizationConfig(SublinearMemoryConfig):
    """Settings for ``trace``, which ignores them."""


class trace:
    """Wraps a function and calls it unchanged: tracing would affect the speed, but not the results.

    >>> @trace(symbolic=True)  # doctest: +SKIP
    ... def train(data): ...

    Args:
        function: the function; if it is omitted, the call returns a decorator.
        symbolic, capture_as_const, and all others: have no effect.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Wrap the function, or if there are only keyword arguments, return a decorator."""
        return super().__new__(cls) if args else functools.partial(cls, **kwargs)

    def __init__(self, function: Callable[..., Any], symbolic: bool = False, **options: Any) -> None:
        self.__wrapped__ = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function's result."""
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def dump(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error, because there is no graph."""
        raise also(CollshimError, NotImplementedError)(
            "trace.dump: collshim.megengine traces nothing: save a state_dict, and dump with MegEngine itself"
        )


@contextmanager
def exclude_from_trace() -> Iterator[None]:
    """Return a context manager that has no effect: nothing is traced anyway."""
    yield


__getattr__ = saying(__name__)
