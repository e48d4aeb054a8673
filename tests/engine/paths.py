"""The paths that a call can take through a transport, derived from its code, and those taken by the suite's cases.

A path is a function that a transport reaches from its entries, or one arm of an ``if`` in such a function. Code for a
failure, a GPU or a look for late ranks is not one, because successful cases on the CPU do not reliably reach it.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from itertools import chain, product
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from collshim import Communicator, transports
from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.corners import corners
from collshim.transports import compute
from collshim.transports.processes import reductions
from collshim.transports.processes import transport as processes
from collshim.transports.processes.carrier import _LINES
from collshim.transports.threads import carrier
from collshim.transports.threads.group import SiteExchange
from collshim.transports.threads.transport import ThreadTransport
from collshim.transports.threads.turns import Turns
from collshim.world import local_worlds, use
from tests.engine.scenarios.forms import into
from tests.engine.scenarios.values import OPS, SHAPES, scenarios
from tests.engine.worlds import TRANSPORTS, Scenario, on_ranks, world

FOLDER = f"{Path(transports.__file__).parent}{os.sep}"
FILES = {
    "threads": (
        "compute.py",
        "threads/exchange.py",
        "threads/messages.py",
        "threads/transport.py",
    ),
    "processes": (
        "processes/carrier.py",
        "processes/exchange.py",
        "processes/gloo.py",
        "processes/reductions.py",
        "processes/transport.py",
    ),
}
"""The code that carries out a collective, by transport."""

ENTRIES = (".start", ".message", "._complete")
"""The entries of posts and waits."""

NO_PATH = re.compile(r"fail|raise|refuse|hopeless|expire|deferred|cuda|gpu|stream(?!_order is None)", re.IGNORECASE)
"""Names in code for a failure or a GPU."""

FRAMEWORK = "torch"
"""The adapter whose corner cases are run; one dialect represents all."""

DTYPES = (torch.float32, torch.bool, torch.complex64, torch.uint16, torch.int32)
"""Dtypes that gloo reduces directly, those that it reduces as others, and one that it does not reduce."""

Line = tuple[str, int]
"""A file below the folder of transports, and a line in it."""


class Function(NamedTuple):
    """A function in one of a transport's files."""

    file: str
    name: str
    node: ast.FunctionDef

    @property
    def mention(self) -> str:
        """The name in code that mentions it: a method has a dot."""
        is_method = any(part[0].isupper() for part in self.name.lstrip("_").split("."))
        return f".{self.node.name}" if is_method else self.node.name

    @property
    def body(self) -> list[ast.stmt]:
        """The statements, without the docstring."""
        return self.node.body[1:] if ast.get_docstring(self.node) is not None else self.node.body


@cache
def paths(name: str) -> dict[str, Line]:
    """Return the first lines of a transport's paths, by description."""
    lines: dict[str, Line] = {}
    counts = Counter[str]()
    for function in _functions_reached(name):
        for label, statements in _branches(function):
            text = f"{function.file} {function.name}{label}"
            counts[text] += 1
            lines[f"{text} ({counts[text]})" if counts[text] > 1 else text] = function.file, statements[0].lineno
    return lines


def _functions_reached(name: str) -> list[Function]:
    """Return the functions that an entry, or a table of the module, mentions, and recursively theirs."""
    trees = {file: ast.parse((Path(FOLDER) / file).read_text(encoding="utf-8")) for file in FILES[name]}
    functions = [function for file, tree in trees.items() for function in _functions(file, tree)]
    tables = [node for tree in trees.values() for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    names = {*ENTRIES}.union(*(_mentions(table) for table in tables if isinstance(table.value, ast.Dict)))
    reached: dict[tuple[str, str], Function] = {}
    while new := [one for one in functions if one.mention in names and one[:2] not in reached]:
        for function in new:
            reached[function[:2]] = function
            if not NO_PATH.search(function.name):
                names |= _mentions(function.node)
    return [function for function in reached.values() if not NO_PATH.search(function.name)]


def _functions(file: str, tree: ast.AST, prefix: str = "") -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases):
            continue
        if isinstance(node, ast.FunctionDef):
            yield Function(file, prefix + node.name, node)
        inner = f"{prefix}{node.name}." if isinstance(node, ast.FunctionDef | ast.ClassDef) else prefix
        yield from _functions(file, node, inner)


def _mentions(tree: ast.AST) -> set[str]:
    """Return every name, and with a dot every attribute, in code on a path."""
    names = set[str]()
    if isinstance(tree, ast.Name | ast.Attribute):
        names.add(tree.id if isinstance(tree, ast.Name) else f".{tree.attr}")
    nodes = list(ast.iter_child_nodes(tree))
    if isinstance(tree, ast.If):
        nodes = [tree.test, *chain.from_iterable(arm for _, arm in _arms_of(tree))]
    return names.union(*(_mentions(node) for node in nodes if not isinstance(node, ast.ExceptHandler)))


def _branches(function: Function) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the body of a function that does something, and its arms, each with the condition that leads there."""
    if function.body and not isinstance(function.body[0], ast.Raise):
        yield "", function.body
        yield from _arms(function.body)


def _arms(statements: list[ast.stmt]) -> Iterator[tuple[str, list[ast.stmt]]]:
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):  # a separate path
            continue
        if isinstance(statement, ast.If):
            yield from _arms_of(statement)
        for field in ("body", "orelse", "finalbody"):
            yield from _arms(getattr(statement, field, []))


def _arms_of(condition: ast.If) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the arms of one ``if`` that are paths."""
    test = ast.unparse(condition.test)
    for word, arm in (("if", condition.body), ("unless", condition.orelse)):
        if arm and not NO_PATH.search(" ".join([test, *map(ast.unparse, arm)])):
            yield f", {word} {test}", arm


@cache
def taken(name: str) -> frozenset[Line]:
    """Return the lines of a transport that some case reaches."""
    if name == "processes":
        ranks = [lines for each in TRANSPORTS[1:] for lines in on_ranks(_lines, 2, each, True)]
        return frozenset[Line]().union(*ranks)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        ranks = [*on_ranks(_lines, 1, "threads", False), *on_ranks(_lines, 2, "threads", False)]
        patch.setattr(carrier, "SHARED_BYTES", 0)
        patch.setattr(compute, "BLOCK", 100)
        return frozenset[Line]().union(*ranks, *on_ranks(_lines, 2, "threads", False), *_lines_in_turns())


def _lines_in_turns() -> list[frozenset[Line]]:
    """Return the lines reached by ranks that run one at a time, like TensorFlow's replicas."""
    turns = Turns(2)

    def rank(number: int) -> frozenset[Line]:
        turns.take(number)
        with use(worlds[number]):
            lines = _lines(False, (_sum,))
        worlds.leave(number, "has returned")
        return lines

    with local_worlds(2, turns) as worlds, ThreadPoolExecutor(2) as pool:
        return [*pool.map(rank, range(2), timeout=60)]


def _lines(is_process: bool, parts: Sequence[Callable[[], None]] = ()) -> frozenset[Line]:
    """Return the lines that this rank reaches in all cases; in its own process also those of threads that it starts."""
    lines = set[Line]()

    def trace_lines(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            lines.add((frame.f_code.co_filename.removeprefix(FOLDER), frame.f_lineno))
        return trace_lines

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        return trace_lines if frame.f_code.co_filename.startswith(FOLDER) else None

    with ExitStack() as stack:
        stack.callback(sys.settrace, sys.gettrace())
        sys.settrace(trace)
        if is_process:
            warnings.simplefilter("ignore")
            threading.settrace(trace)
            stack.callback(threading.settrace, None)
            _as_many_ranks(world())
            _as_more_ranks(world())
        for part in parts or (_ask_corners, _play):
            part()
    return frozenset(lines)


def _ask_corners() -> None:
    comm = world()
    place = RankContext(comm.rank, comm.size, port=int(os.environ.get("MASTER_PORT", "0")))
    for binding in bindings():
        if binding.framework.name == FRAMEWORK and not binding.form:
            for case in corners(binding, comm.size):
                if comm.checks or not case.gradient:  # by comparing calls ranks learn who needs a gradient
                    binding.answer(place, case)


def _play() -> None:
    """Run the engine's own cases: each form of an output, and dtypes that no framework passes to its collectives."""
    comm = world()
    values = [scenarios(OPS, SHAPES[length], dtype) for length in ("small", "large") for dtype in DTYPES]
    cases: list[Scenario] = [scenario for group in (*values, into()) for scenario in group.values()]
    for play in (
        *cases,
        _polled,
        _behind_a_discovery,
        _resumed,
        _by_two_threads,
        _changed,
        _in_like_shapes,
        _from_two_lines,
        _from_many_lines,
    ):
        play(comm)


def _sum() -> None:
    assert world().all_reduce(torch.ones(3)).wait().tolist() == [2.0] * 3


def _polled(comm: Communicator) -> None:
    work = comm.all_gather(torch.ones(3))
    while not work.done():
        time.sleep(0.001)


def _in_like_shapes(comm: Communicator) -> None:
    """Add up arrays whose shapes differ by a dimension of length 1."""
    own = torch.ones((3, 1) if comm.rank else (3,))
    assert comm.all_reduce(own).wait().shape == own.shape


def _by_two_threads(comm: Communicator) -> None:
    """Let two threads wait before the last rank calls; one gives its deadline as another kind of number."""
    if comm.rank == comm.size - 1:
        time.sleep(0.05)
    work = comm.all_reduce(torch.ones(3))
    other = threading.Thread(target=work.wait, args=(np.float64(60),))
    other.start()
    work.wait()
    other.join()


def _behind_a_discovery(comm: Communicator) -> None:
    """Post a call that waits for its turn, because the ranks exchange more about the one before."""
    tensor = torch.ones(3)
    comm.all_reduce(tensor).wait()
    for work in (comm.all_gather_ragged(tensor[comm.rank :]), comm.all_reduce(tensor)):
        work.wait()


def _resumed(comm: Communicator) -> None:
    """Resume a wait that Ctrl-C ended while its result was made."""
    interrupts = [KeyboardInterrupt()]

    def view(result: torch.Tensor) -> torch.Tensor:
        if interrupts:
            raise interrupts.pop()
        return result

    work = comm.all_gather(torch.ones(3)).then(view)
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    work.wait()


def _changed(comm: Communicator) -> None:
    """Change the input before the wait or a poll and before the data moves; leave it unchanged after the data moved."""
    for count, way in product((3, 100_000), ("wait", "poll", "late")):
        tensor = torch.ones(count)
        comm.barrier().wait()
        if comm.rank == comm.size - 1:
            time.sleep(0.05)
        work = comm.all_reduce(tensor, out=tensor)
        if way != "late":
            tensor += 1
        while way == "poll" and not work.done():
            time.sleep(0.001)
        while way == "late" and not work._is_over():
            time.sleep(0.001)
        work.wait()


def _from_two_lines(comm: Communicator) -> None:
    """Compare the lines of the ranks' calls too."""
    transport: Any = comm._transport
    comm.barrier().wait()
    with pytest.MonkeyPatch.context() as patch:
        if isinstance(transport, ThreadTransport):
            patch.setattr(transport.group, "kind", SiteExchange)
        else:
            patch.setattr(transport, "compares_sites", True)
        if comm.rank:
            comm.barrier().wait()
        else:
            comm.barrier().wait()


def _from_many_lines(comm: Communicator) -> None:
    """Call from more lines of a program than a plan keeps."""
    program = "comm.barrier().wait()\n" * (_LINES + 2)
    exec(compile(program, "<lines>", "exec"), {"comm": comm})


def _as_more_ranks(comm: Communicator) -> None:
    """Call as in a group of more than two ranks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reductions, "_PAIR", 0)
        group = comm.subgroup(range(comm.size))
        assert group is not None
        for tensor, op in ((torch.ones(3), "sum"), (torch.ones(3), "avg"), (torch.ones(3, dtype=torch.int32), "max")):
            group.reduce(tensor, 0, op).wait()
        group.reduce(torch.ones(3, dtype=torch.uint16), 0).wait()
        group.reduce(tensor := torch.ones(3), 0, out=tensor).wait()


def _as_many_ranks(comm: Communicator) -> None:
    """Call as in a group so large that fingerprints do not go from each rank to each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_FEW", 0)
        comm.all_reduce(torch.ones(3)).wait()
