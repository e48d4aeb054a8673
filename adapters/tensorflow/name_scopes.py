"""``tf.name_scope``: names of variables made inside a block. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType

from collshim.errors import ArgumentValueError

_SCOPES: ContextVar[tuple[str, ...]] = ContextVar("name_scopes", default=())


class name_scope:
    """A block that puts ``name/`` before the names of variables; it may be entered again, also inside itself.

    Args:
        name: put behind the names of the blocks around it; with a ``/`` at its end it replaces them, ``""`` drops them.

    Raises:
        ValueError: when it is entered, ``name`` is no text.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    def __enter__(self) -> str:
        if not isinstance(self._name, str):
            raise ArgumentValueError("name for name_scope must be a string.")
        scope = self._name if self._name.endswith("/") else f"{current()}{self._name}/" if self._name else ""
        _SCOPES.set((*_SCOPES.get(), scope))
        return scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _SCOPES.set(_SCOPES.get()[:-1])


def current() -> str:
    """What goes before names here."""
    return ("", *_SCOPES.get())[-1]
