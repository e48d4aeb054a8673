"""Write text to streams whose encoding lacks some of its characters."""

from __future__ import annotations

import codecs
import sys
from contextlib import suppress
from io import TextIOWrapper

_SPELLINGS = {"→": "->", "²": "^2", "–": "-"}
_NAME = "collshim.output"


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Return what to write in place of the characters that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_SPELLINGS.get(one) or ascii(one)[1:-1] for one in lacking), error.end


def write_everything() -> None:
    """Let the standard output spell characters that its encoding lacks, as in the locale C, instead of raising."""
    output = sys.stdout
    if not isinstance(output, TextIOWrapper) or output.errors not in ("strict", "surrogateescape"):
        return
    if codecs.lookup(output.encoding).name != "utf-8":
        codecs.register_error(_NAME, _spell)
        with suppress(OSError):  # some streams claim a position and have none
            output.reconfigure(errors=_NAME)
