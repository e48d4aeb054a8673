"""``mindspore.jit`` (source: MindSpore 2.10.0): a decorator that leaves functions unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from collshim.mindspore._checkparam import check_bool, check_in, check_int

__all__ = ["jit", "jit_class"]
C = TypeVar("C", bound=type)


def jit(
    function: Callable[..., Any] | None = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = "O0",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    **options: Any,
) -> Any:
    """Return the function itself, or a decorator that does so: nothing is compiled, and each line runs in Python.

    Args:
        function: the function; None returns a decorator.
        capture_mode: "ast", "bytecode" or "trace". This and the following arguments have no effect.
        jit_level: "O0" or "O1".
        dynamic: 0 or 1.
        fullgraph: a bool.
        backend: the backend's name.
        options: the backend's options.

    Raises:
        TypeError: ``fullgraph`` is not a bool, or ``dynamic`` not an int.
        ValueError: an argument has a value that is not listed above.
    """
    check_in(capture_mode, "capture_mode", "jit", ("ast", "bytecode", "trace"))
    check_in(jit_level, "jit_level", "jit", ("O0", "O1"))
    check_in(check_int(dynamic, "dynamic", "jit"), "dynamic", "jit", (0, 1))
    check_bool(fullgraph, "fullgraph", "jit")
    return (lambda decorated: decorated) if function is None else function


def jit_class(cls: C) -> C:
    """Return the class itself."""
    return cls
