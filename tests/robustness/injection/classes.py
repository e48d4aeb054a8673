"""The classes of faults, and the required outcome of each."""

from __future__ import annotations

from typing import NamedTuple

from collshim.launching.kinds import RANK_KINDS

ANYWHERE = ("before", "between", "anywhere")
AT_A_STEP = ("before", "between")
BOTH = RANK_KINDS
OVER_GLOO = ("processes", "torch")
ALL = (*BOTH, "torch")
EXCEPTIONS = (
    "ValueError",
    "RuntimeError",
    "KeyError",
    "MemoryError",
    "OSError",
    "TimeoutError",
    "ConnectionResetError",
    "StopIteration",
    "GeneratorExit",
    "CancelledError",
    "InjectedError",
    "InjectedRuntimeError",
    "InjectedInterrupt",
)
THROWN = ("InjectedError", "InjectedRuntimeError", "InjectedInterrupt", "SystemExit", "KeyboardInterrupt")


class FaultClass(NamedTuple):
    """A class of faults.

    Attributes:
        fate: the victim's end: it "dies" without an error, "raises" the injected one, is "told" by an error of the
            library, "stays" forever, or is "healthy", like all ranks then.
        transports: those to which it applies.
        details: its variants.
        moments: when it may come.
        subject: the activity that the fault interrupts: a stop point of "world", "group", "message" or "collective" is
            drawn; "edge" for waits.
        seconds: its duration or delay, at least and at most.
        beyond: whether these count from the deadline.
        server: whether the victim is rank 0, which serves the store.
        waits: whether the victim is made to wait for the others.
        endless: whether the stream has no end of its own.
        asked: whether it is drawn only if requested by name.
    """

    fate: str
    transports: tuple[str, ...]
    details: tuple[str, ...] = ("",)
    moments: tuple[str, ...] = ("before",)
    subject: str = ""
    seconds: tuple[float, float] = (0.0, 0.0)
    beyond: bool = False
    server: bool = False
    waits: bool = False
    endless: bool = False
    asked: bool = False
    weight: int = 2


_KILLS = ("SIGKILL", "SIGTERM", "os._exit")
_ENDS = ("os._exit", "SIGKILL")
_SOON = (0.0, 0.03)

CLASSES: dict[str, FaultClass] = {
    "killed rank": FaultClass("dies", OVER_GLOO, _KILLS, ANYWHERE, seconds=_SOON, weight=4),
    "killed server of the store": FaultClass("dies", OVER_GLOO, _KILLS, ANYWHERE, seconds=_SOON, server=True),
    "exit of a rank": FaultClass("raises", ALL, ("SystemExit",), AT_A_STEP),
    "interrupted rank": FaultClass("raises", ALL, ("KeyboardInterrupt",), ANYWHERE, seconds=_SOON),
    "exception in the user's code": FaultClass("raises", ALL, EXCEPTIONS, AT_A_STEP, weight=3),
    "exception of a signal's handler": FaultClass("raises", ALL, EXCEPTIONS, seconds=(0.02, 0.6), waits=True, weight=3),
    "exception of a signal's handler, caught": FaultClass(
        "healthy", ALL, EXCEPTIONS, seconds=(0.02, 0.6), waits=True, weight=3
    ),
    "exception thrown into a thread": FaultClass(
        "raises", ALL, THROWN, ("anywhere",), seconds=(0.0, 0.1), endless=True, weight=4
    ),
    "rank stopped for good": FaultClass("stays", OVER_GLOO, ("SIGSTOP",), ANYWHERE, seconds=_SOON, weight=3),
    "server of the store stopped for good": FaultClass(
        "stays", OVER_GLOO, ("SIGSTOP",), ANYWHERE, seconds=_SOON, server=True, weight=3
    ),
    "rank stopped beyond the deadline": FaultClass(
        "told", OVER_GLOO, ("SIGSTOP",), ANYWHERE, seconds=(1.5, 2.5), beyond=True
    ),
    "rank stopped for a while": FaultClass("healthy", OVER_GLOO, ("SIGSTOP",), ANYWHERE, seconds=(0.2, 1.5)),
    "server of the store stopped for a while": FaultClass(
        "healthy", OVER_GLOO, ("SIGSTOP",), ANYWHERE, seconds=(0.2, 1.5), server=True
    ),
    "thread that never returns": FaultClass(
        "stays", ("threads",), ("sleeps",), AT_A_STEP, seconds=(600, 600), weight=3
    ),
    "rank that comes beyond the deadline": FaultClass(
        "told", ALL, ("sleeps",), AT_A_STEP, seconds=(1.5, 2.5), beyond=True
    ),
    "death while a world is made": FaultClass("dies", OVER_GLOO, _ENDS, subject="world", weight=4),
    "stop while a world is made": FaultClass("stays", OVER_GLOO, ("SIGSTOP",), subject="world", weight=3),
    "death while a group is made": FaultClass("dies", OVER_GLOO, _ENDS, subject="group", weight=3),
    "stop while a group is made": FaultClass("stays", OVER_GLOO, ("SIGSTOP",), subject="group", weight=3),
    "death within a message": FaultClass("dies", ("processes",), _ENDS, subject="message", weight=3),
    "stop within a message": FaultClass("stays", ("processes",), ("SIGSTOP",), subject="message", weight=3),
    "death within a collective": FaultClass("dies", ("processes",), _ENDS, subject="collective", weight=2),
    "stop within a collective": FaultClass("stays", ("processes",), ("SIGSTOP",), subject="collective", weight=2),
    "exception within a collective": FaultClass("raises", ("threads",), THROWN, subject="collective", weight=3),
    "thread that never returns from a collective": FaultClass(
        "stays", ("threads",), ("sleeps",), subject="collective", seconds=(600, 600), weight=3
    ),
    "descriptors run out": FaultClass("may be told", ("processes",), tuple(map(str, range(12))), subject="descriptors"),
    "arrival at the end of a slice": FaultClass("healthy", ALL, subject="edge", weight=2),
    "random delays": FaultClass("healthy", ALL, seconds=(0.0, 0.1), weight=3),
    "partition": FaultClass("told", OVER_GLOO, ("both ways", "one way", "link down"), endless=True, asked=True),
}
