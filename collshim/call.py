"""What one rank asks of a collective, described before it is posted.

Validation, the check between ranks, deadlines and every error text read this one description.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import torch

Shape = tuple[int, ...]

EAGER_BYTES = 4096
"""A send of at most this many bytes is complete at once; a larger one when its receiver has come."""

TAGS = 2**30
"""Users' tags are below; the process groups' own numbers of letters start there."""

REDUCE_OPS = ("sum", "avg", "prod", "min", "max", "band", "bor", "bxor", "premul_sum")
_LONG = 240
"""Letters after which what ended another rank is cut: it may tell of a third one in its turn."""


def _folders() -> tuple[str, ...]:
    """Whose files are not a user's: collshim's, with what its links lead to in a checkout, and torch's.

    torch stands between a user and us in a backward, or where it calls its own process group.
    """
    here = Path(__file__).parent
    links = [entry.resolve() for entry in here.glob("*") if entry.is_symlink()]
    return tuple(f"{folder}{os.sep}" for folder in (here, *links, *torch.__path__))


_NOT_A_USERS = _folders()


class Call(NamedTuple):
    """One rank's call.

    ``shape`` is the shape of this rank's tensor, or of each part where every part has the same; None means that this
    rank has none of its own and takes what it gets. ``sends`` and ``expects`` hold one shape per peer where they are
    unequal; ``expects`` is ``()`` where unequal parts are awaited whose shapes are not known yet. ``discovers`` says
    that the ranks tell each other shapes and dtypes first, whether they check their calls or not. ``content`` says what
    the data stands for where it is no array of the caller's: "object" for a pickled one, "coalesced" for several
    arrays in one, with what the ranks must have alike. ``nan`` tells of the NaN that a finder saw in what is reduced.
    """

    op: str
    shape: Shape | None = None
    dtype: torch.dtype | None = None
    device: str = "any"
    reduce_op: str | None = None
    factor: float | None = None
    root: int | None = None
    sends: tuple[Shape, ...] | None = None
    expects: tuple[Shape, ...] | None = None
    needs_grad: bool = False
    discovers: bool = False
    tag: int = 0
    site: str = ""
    content: str = ""
    nan: str = ""
    sequence: int = 0

    @property
    def name(self) -> str:
        """The collective as its caller spells it: ``all_gather_object``, say."""
        return f"{self.op}_{self.content.partition(' ')[0]}" if self.content else self.op

    def sent(self, peer: int) -> Shape | None:
        """The shape of what this rank gives to ``peer``."""
        return self.shape if self.sends is None else self.sends[peer]

    def expected(self, peer: int) -> Shape | None:
        """The shape that this rank awaits from ``peer``; None takes any."""
        if self.expects is None:
            return self.shape
        return self.expects[peer] if self.expects else None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self._shown())})" + (f" at {self.site}" if self.site else "")

    def _shown(self) -> list[str]:
        arrays = self.content.partition(" ")[2]
        shown = [arrays] if arrays else [] if self.shape is None else [f"shape {self.shape}"]
        shown += [] if self.sends is None else [f"sends {list(self.sends)}"]
        shown += [f"expects {list(self.expects)}"] if self.expects else []
        shown += [] if self.dtype is None else [name_of(self.dtype)]
        shown += [] if self.reduce_op is None else [f"op {self.reduce_op}"]
        shown += [] if self.factor is None else [f"factor {self.factor}"]
        return shown + ([] if self.root is None else [f"{_ROLE.get(self.op, 'root')} {self.root}"])


_ROLE = {"send": "to", "recv": "from"}


def name_of(dtype: torch.dtype) -> str:
    """The dtype's name as every framework here writes it: ``float32``, not ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


class Caller(NamedTuple):
    """Where a call was made: code and line."""

    code: CodeType
    line: int

    def site(self) -> str:
        """``file:line``, for error texts."""
        return f"{self.code.co_filename.rpartition('/')[2]}:{self.line}"


_passed_by: set[int] = set()


def caller() -> Caller:
    """The nearest caller outside collshim and torch."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (id(frame.f_code) in _passed_by or _is_passed_by(frame.f_code)):
        frame = frame.f_back
    return Caller(frame.f_code, frame.f_lineno)


def _is_passed_by(code: CodeType) -> bool:
    passed = code.co_filename.startswith(_NOT_A_USERS)
    if passed:
        _passed_by.add(id(code))  # these functions live as long as the process
    return passed


def call_site() -> str:
    """``file:line`` of the nearest caller outside collshim and torch, for error texts."""
    return caller().site()


def in_the_world(ranks: Sequence[int]) -> str:
    """What follows a text that names ranks of a group, where the world numbers them otherwise."""
    if tuple(ranks) == tuple(range(len(ranks))):
        return ""
    return f"; these are ranks of the group, in the world they are ranks {', '.join(map(str, ranks))}"


def how_it_failed(error: BaseException) -> str:
    """What the other ranks are told of an exception that ends a rank: its class, its first line, and where it arose."""
    told = str(error).partition("\n")[0]
    told = told if len(told) <= _LONG else f"{told[:_LONG]} ..."
    frames = traceback.extract_tb(error.__traceback__)
    site = next((frame for frame in reversed(frames) if not frame.filename.startswith(_NOT_A_USERS)), None)
    where = "" if site is None else f" (at {site.filename.rpartition('/')[2]}:{site.lineno})"
    return f"failed with {type(error).__name__}{': ' if told else ''}{told}{where}"
