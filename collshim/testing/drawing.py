"""Hypothesis's draws inside a test on ranks: rank 0 draws, and the others draw the same values.

Hypothesis keeps an example as a sequence of choices, in pytest's process. Rank 0 requests each choice there when its
strategy needs it. Then the other ranks receive these choices, and each builds its own value from them. So ranks share
no object, strategies are not sent, and Hypothesis shrinks values drawn inside the test like any other argument.

Each draw is a call that all ranks make together. If they do not, all of them raise an error that lists what each drew.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import Verbosity, settings
from hypothesis._settings import local_settings
from hypothesis.control import BuildContext, current_build_context
from hypothesis.errors import StopTest
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.providers import PrimitiveProvider
from hypothesis.reporting import current_verbosity, report, with_reporter
from hypothesis.strategies import DataObject, SearchStrategy

from collshim.calls.site import caller
from collshim.communicator import Communicator
from collshim.errors import MismatchError
from collshim.testing.outcomes import Outcome, cause

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

_DESCRIBING = threading.Lock()
"""Held while a rank describes a strategy. Hypothesis then parses source code, and in Python 3.11.7, among others,
``ast.parse`` can raise SystemError if another thread parses at the same time."""

Ask = Callable[..., Any]


class Example(NamedTuple):
    """What ranks need to know of an example.

    Attributes:
        is_final: whether its notes are shown.
        verbosity: the name of Hypothesis's verbosity setting.
        data: the names of the arguments that are ``st.data()``.
    """

    is_final: bool
    verbosity: str
    data: tuple[str, ...]


@dataclass
class Noted:
    """A rank's report to Hypothesis: drawn values and notes, events, targets, and seconds in the test and in draws."""

    texts: list[str]
    events: dict[str, Any]
    targets: dict[str, Any]
    seconds: float = 0.0
    drawing: float = 0.0


class Source:
    """The choices of an example, in pytest's process."""

    def __init__(self) -> None:
        self._context = current_build_context()
        self._stop: StopTest | None = None
        self._began = time.perf_counter()

    def example(self, drawn: Mapping[str, Any]) -> Example:
        """Begin an example whose arguments are ``drawn``; return what ranks need to know of it."""
        data = tuple(name for name, value in drawn.items() if isinstance(value, DataObject))
        return Example(self._context.is_final, current_verbosity().name, data)

    def answer(self, what: str, *given: Any, **constraints: Any) -> Any:
        """Make a choice for rank 0, or begin or end a span of choices; return None if the example is over."""
        try:
            return getattr(self._context.data, what)(*given, **constraints)
        except StopTest as stop:
            self._stop = stop
            return None

    def take(self, noted: list[Noted]) -> None:
        """Report the ranks' notes to Hypothesis; a note that all ranks made is reported once."""
        ranks: dict[str, list[int]] = {}
        for rank, each in enumerate(noted):
            for text in each.texts:
                ranks.setdefault(text, []).append(rank)
            self._context.data.events.update(each.events)
            self._context.data.target_observations.update(each.targets)
        if noted:  # while a rank draws, others may wait for it in the test's calls
            own = max(each.seconds for each in noted) - max(each.drawing for each in noted)
            rest = time.perf_counter() - self._began - own
            self._context.data.draw_times["on ranks"] = rest  # Hypothesis's deadline does not limit it
        noting = [rank for rank, each in enumerate(noted) if each.texts]
        for text, found in ranks.items():
            of_some = f"rank {', '.join(map(str, found))}: " if set(found) != set(noting) else ""
            report(f"{of_some}{text}")

    def end(self, outcomes: Sequence[Outcome]) -> None:
        """End the example if the ranks ended it because a draw failed.

        Raises:
            StopTest: the ranks ended the example.
        """
        found = cause(outcomes)
        if found is None or not isinstance(outcomes[found].error, StopTest):
            return
        if self._stop is None:  # the strategy ended it on the rank
            self._context.data.mark_invalid()
        raise self._stop


class _Choices(PrimitiveProvider):
    """Requests choices from pytest's process on rank 0; the other ranks have already received them."""

    def __init__(self, ask: Ask | None) -> None:
        super().__init__(None)
        self._ask = ask
        self.data: Any = None

    def _choice(self, kind: str, **constraints: Any) -> Any:
        answer = None if self._ask is None else self._ask(f"draw_{kind}", **constraints)
        if answer is None:
            self.data.mark_overrun()
        return answer

    def draw_boolean(self, p: float = 0.5) -> Any:
        return self._choice("boolean", p=p)

    def draw_integer(self, min_value: int | None = None, max_value: int | None = None, **more: Any) -> Any:
        return self._choice("integer", min_value=min_value, max_value=max_value, **more)

    def draw_float(self, **constraints: Any) -> Any:
        return self._choice("float", **constraints)

    def draw_string(self, intervals: Any, **sizes: Any) -> Any:
        return self._choice("string", intervals=intervals, **sizes)

    def draw_bytes(self, min_size: int = 0, max_size: int = 2**63, **more: Any) -> Any:
        return self._choice("bytes", min_size=min_size, max_size=max_size, **more)

    def span_start(self, label: int, /) -> None:
        if self._ask is not None and self.data is not None:  # None for the span of the complete example
            self._ask("start_span", label)

    def span_end(self, discard: bool, /) -> None:
        if self._ask is not None and self.data is not None and not self.data.frozen:
            self._ask("stop_span", discard=discard)


class Drawing:
    """The draws of one example on one rank.

    Attributes:
        noted: the rank's report to Hypothesis.
    """

    def __init__(self, example: Example, comm: Communicator, ask: Ask | None) -> None:
        choices = _Choices(ask if comm.rank == 0 else None)
        self._example, self._comm = example, comm
        self._data = ConjectureData(random=None, provider=choices, prefix=())
        choices.data = self._data
        self.noted = Noted([], self._data.events, self._data.target_observations)
        self._given = RankData(self)

    @contextmanager
    def in_force(self, test: Callable[..., Any]) -> Iterator[dict[str, Any]]:
        """Let ``note``, ``event``, ``target`` and draws work inside the block; yield the ``st.data()`` arguments."""
        example = self._example
        chosen = settings(verbosity=Verbosity[example.verbosity], database=None)
        context = BuildContext(self._data, is_final=example.is_final, wrapped_test=test)
        with local_settings(chosen), with_reporter(self._note), context:
            began = time.perf_counter()
            yield dict.fromkeys(example.data, self._given)
            self.noted.seconds = time.perf_counter() - began
            if example.data:
                self._exchange(f"ended after {self._given.count} draw{'' if self._given.count == 1 else 's'}", "ended")

    def _note(self, text: object) -> None:
        self.noted.texts.append(str(text))

    def require_same_draw(self, what: str) -> None:
        """Wait until all ranks draw, and require that they make the same draw.

        Raises:
            MismatchError: a rank makes a different draw, or has ended.
        """
        texts = self._exchange(f"{what} at {caller().site()}", what)
        if texts:
            raise MismatchError(f"ranks draw differently, should make the same draws: {texts}")

    def _exchange(self, text: str, key: str) -> str:
        """Wait until all ranks draw or end; return "" if they agree, and otherwise what each does."""
        all_ = self._comm.all_gather_object((_ADDRESS.sub("", key), text)).wait()
        is_same = len({key for key, _ in all_}) == 1
        return "" if is_same else "; ".join(f"rank {rank} {text}" for rank, (_, text) in enumerate(all_))

    @contextmanager
    def alike(self, what: str) -> Iterator[None]:
        """Let the other ranks draw the same values as rank 0 inside the block.

        Raises:
            MismatchError: the strategy needs different choices on this rank.
        """
        if self._comm.rank == 0:
            before, complete = len(self._data.choices), False
            try:
                yield
                complete = True
            finally:
                self._comm.broadcast_object((self._data.choices[before:], complete), 0).wait()
            return
        choices, complete = self._comm.broadcast_object(None, 0).wait()
        self._data.prefix = (*(self._data.prefix or ()), *choices)
        differs = False
        try:
            yield
        except StopTest:
            differs = complete
            if not differs:
                raise
        if differs or self._data.misaligned_at is not None or self._data.index != len(self._data.prefix):
            where = f"{what} at {caller().site()}"
            raise MismatchError(
                f"rank {self._comm.rank} {where} from other choices than rank 0: the strategy must not depend on the "
                "rank"
            )


class RankData(DataObject):
    """The value of ``st.data()`` on a rank."""

    def __init__(self, drawing: Drawing) -> None:
        super().__init__(drawing._data)
        self._drawing = drawing

    def draw(self, strategy: SearchStrategy[Any], label: Any = None) -> Any:
        """Draw a value, the same on all ranks; every rank must call this."""
        named = "" if label is None else f" ({label})"
        with _DESCRIBING:
            what = f"makes draw {self.count + 1}{named} from {strategy!r}"
        began = time.perf_counter()
        self._drawing.require_same_draw(what)
        with self._drawing.alike(what):
            value = super().draw(strategy, label)
        self._drawing.noted.drawing += time.perf_counter() - began
        return value
