"""Mistakes in the flow of a program: collectives that only some ranks call, or that ranks call in different orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from collshim.checking.control_paths import Paths
from collshim.checking.files import File, dotted
from collshim.checking.mistakes import Mistake, mistake, shortened
from collshim.checking.program import Program, Step, functions
from collshim.checking.ranks import depends_on_rank, differs_between_ranks, names_first_rank

_EVERYWHERE = "call it on every rank, outside the condition"
_ENDINGS = {"sys.exit", "os._exit", "exit", "quit", "SystemExit"}


def mistakes_in_flow(file: File, program: Program) -> Iterator[Mistake]:
    """Yield the collectives of a file that some ranks skip, repeat or reorder."""
    flow = _Flow(file, program)
    yield from flow.mistakes_in_block(_statements(file.module))
    for function in functions(file):
        yield from flow.mistakes_in_block(_statements(function.body))


@dataclass(frozen=True, eq=False)
class _Arm:
    """One branch of an ``if``."""

    body: Sequence[cst.CSTNode]
    steps: Sequence[Step]

    @property
    def kinds(self) -> list[str]:
        return [step.kind for step in self.steps]


@dataclass(frozen=True, eq=False)
class _Choice:
    """A place where a program takes one of several branches; ``test`` is what the messages show."""

    node: cst.CSTNode
    test: cst.BaseExpression
    tests: Sequence[cst.BaseExpression]
    arms: Sequence[Sequence[cst.CSTNode]]

    @property
    def first(self) -> bool | None:
        """Whether the first branch is the first rank's; None if it is not clear."""
        if not isinstance(self.node, cst.Match):
            return names_first_rank(self.test)
        pattern = self.node.cases[0].pattern
        return m.matches(pattern, m.MatchValue(m.Integer("0"))) or None


class _Flow:
    def __init__(self, file: File, program: Program) -> None:
        self.file = file
        self.program = program
        self.values = program.values[file]

    def mistakes_in_block(self, block: Sequence[cst.CSTNode]) -> Iterator[Mistake]:
        """Yield the mistakes in statements that follow each other, and in the blocks inside them."""
        choices = {statement: self._choices(statement) for statement in block}
        balanced = self._balanced([choice for found in choices.values() for choice in found])
        for number, (statement, found) in enumerate(choices.items()):
            for choice in found:
                if choice not in balanced:
                    yield from self._branch_mistakes(choice, block[number + 1 :])
            if isinstance(statement, cst.For | cst.While):
                yield from self._loop_mistakes(statement)
            for inner in _blocks(statement):
                yield from self.mistakes_in_block(inner)

    def _choices(self, statement: cst.CSTNode) -> list[_Choice]:
        """Return the choices that a statement makes itself and that depend on the rank."""
        found = _choices_of(statement, self.file)
        return [one for one in found if any(differs_between_ranks(test, self.values) for test in one.tests)]

    def _steps(self, nodes: Sequence[cst.CSTNode]) -> list[Step]:
        run = (node for node in nodes if not isinstance(node, cst.FunctionDef | cst.ClassDef))
        return [step for node in run for step in self.program.steps(node, self.file)]

    def _branch_mistakes(self, choice: _Choice, after: Sequence[cst.CSTNode]) -> Iterator[Mistake]:
        arms = [_Arm(body, self._steps(body)) for body in choice.arms]
        arms = [arm for arm in arms if not _fails(arm.body)]
        rest = self._steps(after)
        ways = [arm if _leaves(arm.body) else _Arm([*arm.body, *after], [*arm.steps, *rest]) for arm in arms]
        if not any(_leaves(arm.body) for arm in arms):
            ways = arms
        kinds = [way.kinds for way in ways]
        if all(one == kinds[0] for one in kinds) or self._agree(arms, after):
            return
        if all(sorted(one) == sorted(kinds[0]) for one in kinds):
            yield self._reordered(choice, ways)
            return
        yield from self._one_sided(choice, ways)

    def _agree(self, arms: Sequence[_Arm], after: Sequence[cst.CSTNode]) -> bool:
        """Return whether the paths through each branch, and what follows it, call the same collectives."""
        paths = Paths(
            lambda node: [step.kind for step in self._steps([node])],
            lambda node: _leaves([node]),
            lambda node: _fails([node]),
        )
        found = [paths.through([*arm.body, *after]) for arm in arms]
        return found[:1] != [None] and all(one == found[0] for one in found)

    def _balanced(self, choices: Sequence[_Choice]) -> set[_Choice]:
        """Return the choices of a block for which a second one lets the other ranks make the same calls.

        The nearest ones with the same collectives are paired, unless both name the first rank, or both the others.
        """
        waiting: list[tuple[_Choice, list[str]]] = []
        found = set[_Choice]()
        for choice in choices:
            kinds = [step.kind for body in choice.arms for step in self._steps(body)]
            before = waiting[-1] if waiting else None
            if before and before[1] == kinds and not _same_ranks(before[0], choice):
                found |= {waiting.pop()[0], choice}
            elif kinds:
                waiting.append((choice, kinds))
        return found

    def _reordered(self, choice: _Choice, ways: Sequence[_Arm]) -> Mistake:
        first, second = (", ".join(step.name for step in way.steps) for way in ways[:2])
        text = f"if {shortened(choice.test)}, this rank calls {first}; otherwise it calls {second}"
        return mistake("branch-order", self.file, choice.node, text, "call them in the same order on every rank")

    def _one_sided(self, choice: _Choice, ways: Sequence[_Arm]) -> Iterator[Mistake]:
        """Yield a mistake for each call that has no counterpart in a different branch."""
        seen = set[cst.Call]()
        for way in ways:
            for step in way.steps:
                less = [other for other in ways if other.kinds.count(step.kind) < way.kinds.count(step.kind)]
                missing = [other for other in less if not self._may_call_others(other)]
                if missing and step.node not in seen and not _shared(step, ways):
                    seen.add(step.node)
                    yield self._skipped(step, choice)

    def _may_call_others(self, way: _Arm) -> bool:
        """Return whether a branch calls unknown functions, one of which may make the missing call."""
        calls = [call for node in way.body for call in self.file.calls(node)]
        return any(self.program.is_unknown(call, self.file) for call in calls)

    def _skipped(self, step: Step, choice: _Choice) -> Mistake:
        test = ("match " if isinstance(choice.node, cst.Match) else "if ") + shortened(choice.test)
        if any(step.node is call for call in self.file.below(choice.node)):
            text = f"{step.name} is called only on ranks that take one branch of `{test}`; it waits for the others"
        else:
            line = self.file.line(choice.node)
            text = f"{step.name} is not called on ranks that leave earlier, at `{test}` in line {line}"
        return mistake("rank-branch", self.file, step.node, text, _EVERYWHERE)

    def _loop_mistakes(self, node: cst.For | cst.While) -> Iterator[Mistake]:
        times = node.iter if isinstance(node, cst.For) else node.test
        arguments = [one.value for one in times.args] if isinstance(times, cst.Call) else [times]
        is_range = (
            isinstance(node, cst.While) or dotted(times.func if isinstance(times, cst.Call) else times) == "range"
        )
        if not is_range or len(arguments) == 3 or not any(depends_on_rank(one, self.values) for one in arguments):
            return
        for step in self._steps([node.body]):
            text = f"{step.name} is called in a loop over `{shortened(times)}`, which differs between ranks"
            yield mistake("rank-loop", self.file, step.node, text, "let every rank make the same number of calls")


def _shared(step: Step, ways: Sequence[_Arm]) -> bool:
    """Return whether a call is on every path."""
    return all(any(other.node is step.node for other in way.steps) for way in ways)


def _choices_of(statement: cst.CSTNode, file: File) -> Iterator[_Choice]:
    if isinstance(statement, cst.If):
        tests, arms = list(_tests(statement)), _arms(statement)
        yield _Choice(statement, tests[0], tests, arms[:-1] if not arms[-1] and _name_all_ranks(tests) else arms)
    elif isinstance(statement, cst.Match):
        bodies = [_statements(case.body) for case in statement.cases]
        last = statement.cases[-1]
        takes_all = isinstance(last.pattern, cst.MatchAs) and last.pattern.pattern is None and last.guard is None
        yield _Choice(statement, statement.subject, [statement.subject], bodies if takes_all else [*bodies, ()])
    elif isinstance(statement, cst.SimpleStatementLine | cst.BaseSmallStatement):
        for node in file.run_by(statement):
            if isinstance(node, cst.IfExp):
                yield _Choice(node, node.test, [node.test], [[node.body], [node.orelse]])
            elif isinstance(node, cst.BooleanOperation):
                yield _Choice(node, node.left, [node.left], [[node.right], ()])


def _name_all_ranks(tests: Sequence[cst.BaseExpression]) -> bool:
    """Return whether conditions such as ``rank == 0`` and ``rank > 0`` name all ranks together."""
    compared = {shortened(test.left) for test in tests if isinstance(test, cst.Comparison)}
    return len(compared) == 1 and {names_first_rank(test) for test in tests} == {True, False}


def _same_ranks(one: _Choice, other: _Choice) -> bool:
    """Return whether two conditions are the same, or whether both name the first rank, or both the other ranks."""
    return shortened(one.test) == shortened(other.test) or one.first is other.first is not None


def _tests(node: cst.If) -> Iterator[cst.BaseExpression]:
    yield node.test
    if isinstance(node.orelse, cst.If):
        yield from _tests(node.orelse)


def _arms(node: cst.If) -> list[Sequence[cst.CSTNode]]:
    """Return the branches of an ``if``; the last one is empty if there is no ``else``."""
    if isinstance(node.orelse, cst.If):
        return [_statements(node.body), *_arms(node.orelse)]
    return [_statements(node.body), _statements(node.orelse.body) if node.orelse else ()]


def _statements(node: cst.Module | cst.BaseSuite) -> Sequence[cst.CSTNode]:
    return node.body


def _blocks(node: cst.CSTNode) -> Iterator[Sequence[cst.CSTNode]]:
    """Yield the blocks directly inside a statement, but not those of functions."""
    if isinstance(node, cst.FunctionDef):
        return
    if isinstance(node, cst.ClassDef):
        yield [one for one in _statements(node.body) if not isinstance(one, cst.FunctionDef)]
    elif isinstance(node, cst.If):
        yield from _arms(node)
    elif isinstance(node, cst.Match):
        yield from (_statements(case.body) for case in node.cases)
    elif isinstance(node, cst.For | cst.While | cst.With):
        yield _statements(node.body)
    elif isinstance(node, cst.Try | cst.TryStar):
        parts = [node.body, *(handler.body for handler in node.handlers)]
        parts += [part.body for part in (node.orelse, node.finalbody) if part]
        yield from map(_statements, parts)


def _last(body: Sequence[cst.CSTNode]) -> cst.CSTNode | None:
    line = body[-1] if body else None
    return line.body[-1] if isinstance(line, cst.SimpleStatementLine) else line


def _leaves(body: Sequence[cst.CSTNode]) -> bool:
    """Return whether a branch ends the function, this iteration of the loop, or the process without an error."""
    last = _last(body)
    return isinstance(last, cst.Return | cst.Continue | cst.Break) or _ends_well(last)


def _fails(body: Sequence[cst.CSTNode]) -> bool:
    """Return whether a branch raises an error or ends the process with one; the other ranks are notified of both."""
    last = _last(body)
    return (isinstance(last, cst.Raise) or _ending(last) is not None) and not _ends_well(last)


def _ending(last: cst.CSTNode | None) -> cst.Call | None:
    """Return the call by which a statement ends the process, ``sys.exit()`` or ``raise SystemExit()``."""
    ends = last.value if isinstance(last, cst.Expr) else last.exc if isinstance(last, cst.Raise) else None
    return ends if isinstance(ends, cst.Call) and dotted(ends.func) in _ENDINGS else None


def _ends_well(last: cst.CSTNode | None) -> bool:
    """Return whether a statement ends the process with the exit code 0."""
    if isinstance(last, cst.Raise) and last.exc is not None and dotted(last.exc) == "SystemExit":
        return True
    call = _ending(last)
    return call is not None and (not call.args or shortened(call.args[0].value) in ("0", "None"))
