"""Spellings of the suite as functions for bad calls: arguments and expected results come from the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from collshim.conformance import bindings
from collshim.conformance.bindings.answers import seen, waited
from collshim.conformance.bindings.arguments import Asker, role_of
from collshim.conformance.bindings.barriers import Barrier
from collshim.conformance.bindings.messages import PEERS, Half, Messages, Ring
from collshim.conformance.bindings.rank_context import RankContext as Caller
from collshim.conformance.bindings.rank_context import resolve
from collshim.conformance.bindings.spelling import Spelling as Suite
from collshim.conformance.cases import Case
from collshim.conformance.comparison import differences
from tests.robustness.context import SIZE, RankContext
from tests.robustness.spelling import Arguments, Call, Spelling

_SAME = ("rows", "dtype")


@dataclass(frozen=True, kw_only=True)
class Spelled(Spelling):
    """A function that has a spelling in the suite, ``suite``."""

    suite: Suite
    kept: tuple[str, ...] = ()

    def run(self, context: RankContext) -> str:
        """Make a valid call as the suite does; return the differences from the suite's expectation."""
        asker = _asker(self.suite, context, self.kept)
        answer = self.suite.call(asker.context, asker.case, context.group)
        read = replace(answer, returned=seen(answer.returned), arguments=seen(dict(answer.arguments)))
        found = differences(self.suite, asker.case, asker.context.rank, read)
        return "; ".join(f"{what} is {actual}, should be {expected}" for what, actual, expected in found)

    def made(self, context: RankContext, arguments: Arguments) -> Any:
        """Call the function."""
        if self.call is not None:
            return self.call(context, arguments)
        return self.suite.speak(self.suite.invocation(_asker(self.suite, context, self.kept), arguments))


def _asker(suite: Suite, context: RankContext, kept: tuple[str, ...]) -> Asker:
    memory: dict[Any, Any] = {kept: context.group} if kept else {}
    caller = Caller(context.ranks[context.rank], SIZE, memory=memory)
    return Asker(caller, suite.framework, _case(suite, context), context.rank, context.group)


def _case(suite: Suite, context: RankContext) -> Case:
    """Return the suite's case; of the two reductions that ranks may disagree on, the function has the second."""
    ops = suite.admits.reduce_ops
    op, root = context.op if context.op in ops else ops[-1], context.root if suite.admits.roots else 0
    case = context._replace(op=op, root=root).case(suite.collective)
    counts_rows = "optional rows to each" in suite.takes.values()
    return replace(case, lengths=((context.rows,) * SIZE,) * SIZE) if counts_rows else case


def spelled(
    name: str,
    *,
    agreed: Sequence[str] | None = None,
    more: Mapping[str, str] | None = None,
    call: Call | None = None,
    kept: tuple[str, ...] = (),
) -> Spelled:
    """Return the suite's spelling of this name.

    Args:
        agreed: the fields of ``RankContext`` that ranks must agree on, if they differ from the collective's.
        more: the roles of further arguments, which a valid call omits.
        call: makes a bad call, if not as the suite does.
        kept: the key by which the suite's calls find the surface's group, if that is not an argument.
    """
    suite = bindings.find(name)
    assert isinstance(suite, Suite)
    roles = {parameter: role for parameter, role in suite.takes.items() if role_of(role) != "ignored root"}
    return Spelled(
        path=suite.path,
        roles={**roles, **(more or {})},
        good=lambda context: suite.arguments(_asker(suite, context, kept)),
        op="all_gather" if suite.holders == "all" else suite.collective,
        differs=_agreed(suite) if agreed is None else tuple(agreed),
        call=call,
        groups="group" in suite.takes,
        suite=suite,
        kept=kept,
    )


def every(
    framework: str, agreed: Mapping[str, Sequence[str]] | None = None, without: Sequence[str] = ()
) -> tuple[Spelled, ...]:
    """Return every function of arrays that the suite spells, once; ``agreed`` by the ends of their paths."""
    suites = [one for one in bindings.bindings_of(framework) if isinstance(one, Suite)]
    names = [one.name for one in suites if not (one.form or one.coalesced or one.name in without)]
    fields = {name: fields for name in names for end, fields in (agreed or {}).items() if name.endswith(end)}
    return tuple(spelled(name, agreed=fields.get(name)) for name in names)


def every_barrier(
    framework: str, more: Mapping[str, str] | None = None, without: Sequence[str] = (), **fields: Any
) -> tuple[Spelling, ...]:
    """Return every barrier that the suite spells; ``more`` has the roles of further arguments."""
    suites = [one for one in bindings.bindings_of(framework) if isinstance(one, Barrier)]
    return tuple(
        _barrier(one, more or {}, **fields) for one in suites if not (one.form or one.made or one.name in without)
    )


def _barrier(suite: Barrier, more: Mapping[str, str], **fields: Any) -> Spelling:
    return Spelling(
        suite.path,
        roles={**suite.takes, **more},
        good=lambda context: dict.fromkeys(suite.takes, context.group),
        right=lambda context: None,
        op="barrier",
        groups=bool(suite.takes),
        **fields,
    )


def every_message(framework: str) -> tuple[Spelling, ...]:
    """Return the two functions of every spelling of messages of arrays that makes one call of each."""
    suites = [one for one in bindings.bindings_of(framework) if isinstance(one, Ring)]
    return tuple(half for one in suites if not (one.form or one.speak) for half in messages(one.name))


def messages(name: str) -> tuple[Spelling, Spelling]:
    """Return the two functions of the suite's spelling of this name, each matched by the other."""
    suite = bindings.find(name)
    assert isinstance(suite, Messages)

    def sent(context: RankContext, arguments: Arguments) -> Any:
        return _called(suite, suite.sends, arguments)

    def received(context: RankContext, arguments: Arguments) -> Any:
        """Return the received message: the argument that the function writes, or its return value."""
        returned = _called(suite, suite.receives, arguments)
        returned = returned[0] if isinstance(returned, tuple) else returned  # a handle follows it
        return arguments[_message(suite.receives)] if getattr(suite, "fills", True) else returned

    def to_send(context: RankContext) -> Arguments:
        return _good(suite.sends, context, context.own(), context.after)

    def to_receive(context: RankContext) -> Arguments:
        return _good(suite.receives, context, context.blank(), context.before)

    return (
        _met(suite, suite.sends, to_send, sent, after=lambda context: received(context, to_receive(context))),
        _met(suite, suite.receives, to_receive, received, before=lambda context: sent(context, to_send(context))),
    )


def _met(suite: Messages, half: Half, good: Callable[[RankContext], Arguments], call: Call, **more: Any) -> Spelling:
    roles = {name: role for name, role in half.takes.items() if role != "kind of array"}
    met: dict[str, Any] = {"right": RankContext.from_before, "groups": "group" in half.takes, **more}
    return Spelling(suite.home + half.name, roles=roles, good=good, call=call, **met)


def _good(half: Half, context: RankContext, message: Any, peer: int) -> Arguments:
    """Return this rank's arguments, for a peer in the group."""
    values = {"tag": 3, "group": context.group, "optional group": context.group}
    values |= dict.fromkeys(PEERS, context.ranks[peer])
    return {name: values.get(role, message) for name, role in half.takes.items()}


def _message(half: Half) -> str:
    return next(name for name, role in half.takes.items() if role not in (*PEERS, "tag", "group", "optional group"))


def _called(suite: Messages, half: Half, arguments: Arguments) -> Any:
    return waited(resolve(f"collshim.{suite.home}{half.name}")(**arguments))


def _agreed(suite: Suite) -> tuple[str, ...]:
    """Return the fields that the calls of all ranks share."""
    roles = {role_of(role) for role in suite.takes.values()}
    root = {"root", "root in the group"} & roles and suite.collective in ("reduce", "broadcast")
    op = any(role in ("ReduceOp", "op") or role.endswith("'s op") for role in roles)
    return (*_SAME, *(["root"] if root else []), *(["op"] if op else []))
