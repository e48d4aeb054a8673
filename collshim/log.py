"""The log ``collshim``: at INFO the communicators that ranks make and close, at DEBUG every call with its line.

``COLLSHIM_LOG=info`` or ``debug`` shows it on standard error; without it the program's own ``logging`` decides. Levels
are read when a communicator is made, so that calls cost nothing where nobody reads them.
"""

from __future__ import annotations

import logging
import os

from collshim.errors import ArgumentValueError

LOG = logging.getLogger("collshim")

_LEVELS = {"info": logging.INFO, "debug": logging.DEBUG}
_FORM = "%(asctime)s collshim: %(message)s"

_warned: dict[str, object] = {}
"""What ``warn_once`` has logged in this process."""


def warn_once(text: str, *arguments: object) -> None:
    """Log a warning once in a process, whatever its arguments; of several threads one does."""
    own = object()
    if _warned.setdefault(text, own) is own:
        LOG.warning(text, *arguments)


def show_as_asked() -> None:
    """Let what ``COLLSHIM_LOG`` asks for be written to standard error.

    Raises:
        ArgumentValueError: it is none of its values.
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
