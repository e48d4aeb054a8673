"""The logger ``collshim``: at INFO the communicators that ranks make and close, at DEBUG every call with its line.

``COLLSHIM_LOG=info`` or ``debug`` shows it on standard error; otherwise the program's own ``logging`` decides. Levels
are read when a communicator is made, so that calls cost nothing if no one reads them.
"""

from __future__ import annotations

import logging
import os

from collshim.errors import ArgumentValueError

LOG = logging.getLogger("collshim")

_LEVELS = {"info": logging.INFO, "debug": logging.DEBUG}
_FORM = "%(asctime)s collshim: %(message)s"

_warned: dict[str, object] = {}
"""The texts that ``warn_once`` has logged in this process."""


def warn_once(text: str, *arguments: object) -> None:
    """Log a warning once in a process, whatever its arguments; if threads race, one of them logs it."""
    own = object()
    if _warned.setdefault(text, own) is own:
        LOG.warning(text, *arguments)


def show_as_asked() -> None:
    """Write to standard error what ``COLLSHIM_LOG`` asks for.

    Raises:
        ArgumentValueError: ``COLLSHIM_LOG`` has an unknown value.
    """
    asked = os.environ.get("COLLSHIM_LOG", "")
    if not asked:
        return
    if asked.lower() not in _LEVELS:
        raise ArgumentValueError(f"COLLSHIM_LOG is {asked!r}, should be info or debug")
    LOG.setLevel(_LEVELS[asked.lower()])
    if not any(handler.get_name() == __name__ for handler in LOG.handlers):
        handler = logging.StreamHandler()
        handler.set_name(__name__)
        handler.setFormatter(logging.Formatter(_FORM))
        LOG.addHandler(handler)
        LOG.propagate = False  # the root's handler would write it again
