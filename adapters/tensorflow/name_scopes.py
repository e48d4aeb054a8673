"""``tf.name_scope``: names of variables created inside a block. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType

from collshim.errors import ArgumentValueError

_SCOPES: ContextVar[tuple[str, ...]] = ContextVar("name_scopes", default=())


class name_scope:
    """A context manager that puts ``name/`` before the names of variables; it may be entered repeatedly, also nested.

    Args:
        name: appended to the names of the enclosing blocks; with a final ``/`` it replaces them, and ``""`` drops them.

    Raises:
        ValueError: on entering, if ``name`` is not a string.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The name, as passed."""
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


def get_current_name_scope() -> str:
    """Return the name of the enclosing scopes, such as ``outer/inner``; "" outside all scopes."""
    return current().removesuffix("/")


def current() -> str:
    """Return the current prefix of names."""
    return ("", *_SCOPES.get())[-1]
