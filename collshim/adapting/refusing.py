"""How an adapter refuses: an error of collshim's that is one of the framework's too, with the rank behind the text."""

from __future__ import annotations

from typing import NoReturn

from collshim import world
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also

_BASES: dict[type[Exception], type[ArgumentError]] = {TypeError: ArgumentTypeError, ValueError: ArgumentValueError}


def refuse(exception: type[Exception], text: str) -> NoReturn:
    """Raise an ``ArgumentError`` that is also an ``exception``: the framework's words, and on which rank."""
    raise also(_BASES.get(exception, ArgumentError), exception)(text + world.place())
