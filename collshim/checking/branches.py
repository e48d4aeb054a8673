"""Mistakes in the flow of a program: collectives that only some ranks call, or that ranks call in different orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from collshim.checking.files import File, dotted
from collshim.checking.mistakes import Mistake, mistake, shortened
from collshim.checking.program import Program, Step, functions
from collshim.checking.ranks import depends_on_rank

_EVERYWHERE = "call it on every rank, outside the condition"
_ENDINGS = {"sys.exit", "os._exit", "exit", "quit"}


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


class _Flow:
    def __init__(self, file: File, program: Program) -> None:
        self.file = file
        self.program = program
        self.values = program.values[file]

    def mistakes_in_block(self, block: Sequence[cst.CSTNode]) -> Iterator[Mistake]:
        """Yield the mistakes in statements that follow each other, and in the blocks inside them."""
        for number, statement in enumerate(block):
            if isinstance(statement, cst.If) and self._depends_on_rank(statement):
                yield from self._branch_mistakes(statement, block, number)
            if isinstance(statement, cst.For | cst.While):
                yield from self._loop_mistakes(statement)
            for inner in _blocks(statement):
                yield from self.mistakes_in_block(inner)

    def _depends_on_rank(self, node: cst.If) -> bool:
        return any(depends_on_rank(test, self.values) for test in _tests(node))

    def _steps(self, nodes: Sequence[cst.CSTNode]) -> list[Step]:
        run = (node for node in nodes if not isinstance(node, cst.FunctionDef | cst.ClassDef))
        return [step for node in run for step in self.program.steps(node, self.file)]

    def _branch_mistakes(self, node: cst.If, block: Sequence[cst.CSTNode], number: int) -> Iterator[Mistake]:
        arms = [_Arm(body, self._steps(body)) for body in _arms(node)]
        arms = [arm for arm in arms if not _fails(arm.body)]
        after = block[number + 1 :]
        rest = self._steps(after)
        ways = [arm if _leaves(arm.body) else _Arm([*arm.body, *after], [*arm.steps, *rest]) for arm in arms]
        if not any(_leaves(arm.body) for arm in arms):
            ways = arms
        kinds = [way.kinds for way in ways]
        if all(one == kinds[0] for one in kinds) or self._is_balanced(node, block):
            return
        if all(sorted(one) == sorted(kinds[0]) for one in kinds):
            yield self._reordered(node, ways)
            return
        yield from self._one_sided(node, ways)

    def _is_balanced(self, node: cst.If, block: Sequence[cst.CSTNode]) -> bool:
        """Return whether a second condition in the same block lets the other ranks make the same calls."""
        return any(node in pair for pair in self._pairs(block))

    def _pairs(self, block: Sequence[cst.CSTNode]) -> list[tuple[cst.If, cst.If]]:
        """Return pairs of a block's conditions on the rank with the same collectives; the nearest ones are paired."""
        waiting: list[tuple[cst.If, list[str]]] = []
        pairs: list[tuple[cst.If, cst.If]] = []
        for node in block:
            if isinstance(node, cst.If) and self._depends_on_rank(node):
                kinds = [step.kind for body in _arms(node) for step in self._steps(body)]
                before = waiting[-1] if waiting else None
                if before and before[1] == kinds and shortened(before[0].test) != shortened(node.test):
                    pairs.append((waiting.pop()[0], node))
                elif kinds:
                    waiting.append((node, kinds))
        return pairs

    def _reordered(self, node: cst.If, ways: Sequence[_Arm]) -> Mistake:
        first, second = (", ".join(step.name for step in way.steps) for way in ways[:2])
        text = f"if {shortened(node.test)}, this rank calls {first}; otherwise it calls {second}"
        return mistake("branch-order", self.file, node, text, "call them in the same order on every rank")

    def _one_sided(self, node: cst.If, ways: Sequence[_Arm]) -> Iterator[Mistake]:
        """Yield a mistake for each call that has no counterpart in a different branch."""
        seen = set[cst.Call]()
        for way in ways:
            for step in way.steps:
                less = [other for other in ways if other.kinds.count(step.kind) < way.kinds.count(step.kind)]
                missing = [other for other in less if not self._may_call_others(other)]
                if missing and step.node not in seen and not _shared(step, ways):
                    seen.add(step.node)
                    yield self._skipped(step, node)

    def _may_call_others(self, way: _Arm) -> bool:
        """Return whether a branch calls unknown functions, one of which may make the missing call."""
        calls = [call for node in way.body for call in self.file.calls(node)]
        return any(self.program.is_unknown(call, self.file) for call in calls)

    def _skipped(self, step: Step, node: cst.If) -> Mistake:
        test = shortened(node.test)
        if any(step.node is call for call in self.file.below(node)):
            text = f"{step.name} is called only on ranks that take one branch of `if {test}`; it waits for the others"
        else:
            text = (
                f"{step.name} is not called on ranks that leave earlier, at `if {test}` in line {self.file.line(node)}"
            )
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
    elif isinstance(node, cst.For | cst.While | cst.With):
        yield _statements(node.body)
    elif isinstance(node, cst.Try | cst.TryStar):
        parts = [node.body, *(handler.body for handler in node.handlers)]
        parts += [part.body for part in (node.orelse, node.finalbody) if part]
        yield from map(_statements, parts)


def _last(body: Sequence[cst.CSTNode]) -> cst.CSTNode | None:
    line = body[-1] if body else None
    return line.body[-1] if isinstance(line, cst.SimpleStatementLine) else None


def _leaves(body: Sequence[cst.CSTNode]) -> bool:
    """Return whether a branch ends the function or this iteration of the loop."""
    return isinstance(_last(body), cst.Return | cst.Continue | cst.Break)


def _fails(body: Sequence[cst.CSTNode]) -> bool:
    """Return whether a branch raises an error or ends the process; the other ranks are notified of both."""
    last = _last(body)
    is_exit = isinstance(last, cst.Expr) and isinstance(last.value, cst.Call) and dotted(last.value.func) in _ENDINGS
    return isinstance(last, cst.Raise) or is_exit
