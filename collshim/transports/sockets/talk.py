"""Communication of processes apart from messages: which line of the program each runs; why the world must end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from collshim.transports.sockets.connection import ASK, LONGEST_HEADER, OBJECT, TELL, Connection, Frame, encode

TALK = (ASK, TELL, OBJECT)
"""Kinds of frames that ``Talk`` handles."""


class Lines(Protocol):
    """The connections of a process, as ``Talk`` uses them; see ``Connections``."""

    addresses: Mapping[int, tuple[str, int]]

    def write(self, peer: int, frame: bytes) -> None:
        """Send a frame to a rank, on a connection that is made if there is none."""

    def wait(self, over: Callable[[], bool], seconds: float) -> bool:
        """Handle arrivals until ``over``, for at most that many seconds."""
        ...

    def watch(self, rank: int) -> None:
        """See ``Connections``."""
        ...

    def end_of(self, rank: int) -> str:
        """Say how the connection to a rank ended."""
        ...


class Talk:
    """One process's side of this communication.

    Attributes:
        activity: a function that describes what this rank is doing, for ranks that ask.
        end_world: a function that is called with the reason why a rank objects to the world.
    """

    def __init__(self, lines: Lines) -> None:
        self.activity: Callable[[], str] = lambda: ""
        self.end_world: Callable[[str], None] = lambda why: None
        self._lines = lines
        self._answers: dict[int, str] = {}
        self._asked = 0

    def handle(self, connection: Connection, frame: Frame) -> None:
        """Handle a rank's question, answer or objection; called with the connections' lock held."""
        if frame.kind == ASK:
            answer = self.activity().encode()[:LONGEST_HEADER]
            connection.write(encode(TELL, answer, number=frame.number))
        elif frame.kind == TELL:
            self._answers[frame.number] = frame.header.decode(errors="replace")
        else:
            self.end_world(frame.header.decode(errors="replace"))

    def object(self, ranks: Sequence[int], why: str) -> None:
        """Tell ranks why the world must end."""
        for rank in ranks:
            with suppress(OSError):  # the rank has ended already
                self._lines.write(rank, encode(OBJECT, why.encode()[:LONGEST_HEADER]))

    def activities(self, ranks: Sequence[int], seconds: float) -> dict[int, str]:
        """Ask ranks what they are doing, for at most ``seconds``; return each answer, or that the process has ended.

        Returns nothing before the ranks know each other's addresses, and omits ranks that answer with an empty text.
        """
        if not self._lines.addresses:
            return {}
        asked, limit = {rank: self._ask(rank) for rank in ranks}, time.monotonic() + seconds

        def is_over() -> bool:
            return all(number in self._answers or self._lines.end_of(rank) for rank, number in asked.items())

        while not self._lines.wait(is_over, max(0.0, limit - time.monotonic())) and time.monotonic() < limit:
            pass
        answers = {rank: self._answers.pop(number, None) for rank, number in asked.items()}
        texts = {rank: self._silence(rank, seconds) if text is None else text for rank, text in answers.items()}
        return {rank: text for rank, text in texts.items() if text}

    def has_ended(self, rank: int) -> bool:
        """Return whether the process of a rank is known to have ended; connect to the rank, so that this is noticed."""
        if rank in self._lines.addresses:
            self._lines.watch(rank)
        return bool(self._lines.end_of(rank))

    def _ask(self, rank: int) -> int:
        self._asked = number = self._asked + 1
        with suppress(OSError):  # ``end_of`` reports it
            self._lines.write(rank, encode(ASK, number=number))
        return number

    def _silence(self, rank: int, seconds: float) -> str:
        address, end = "{}:{}".format(*self._lines.addresses[rank]), self._lines.end_of(rank)
        if end:
            return f"has ended: its process at {address} is gone ({end})"
        return f"has not answered at {address} for {seconds:g} s: its process is stopped, or busy in native code"
