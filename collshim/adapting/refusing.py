"""How adapters refuse arguments: with an error that is both collshim's and the framework's, and names the rank."""

from __future__ import annotations

from typing import NoReturn

from collshim import world
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also

_BASES: dict[type[Exception], type[ArgumentError]] = {TypeError: ArgumentTypeError, ValueError: ArgumentValueError}


def refuse(exception: type[Exception], text: str) -> NoReturn:
    """Raise an ``ArgumentError`` that is also an ``exception``, with the framework's text, followed by the rank."""
    raise also(_BASES.get(exception, ArgumentError), exception)(text + world.place())
