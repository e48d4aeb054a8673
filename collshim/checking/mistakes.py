"""Mistakes that a program's source shows: their rules, and the comment that silences a rule on a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from collshim.checking.files import File

RULES = {
    "rank-branch": "A collective is called only by some ranks.",
    "rank-loop": "A collective is called a number of times that depends on the rank.",
    "branch-order": "Two branches of a condition on the rank call collectives in different orders.",
    "in-place-result": "The result of a call that writes into its argument is used, and it is None.",
    "pair-as-tensor": "A pair of a tensor and a handle is used as a tensor.",
    "tensor-to-primitive": "A primitive is made with a tensor, instead of being called with it.",
    "cut-gradient": "The loss depends on a tensor that a collective wrote and that autograd does not record.",
    "mean-divided": "A mean over the ranks is divided by the number of ranks again.",
}
"""What each rule finds, by the rule's name."""

_IGNORED = re.compile(r"#\s*collshim:\s*ignore(?:\[([\w\-, ]*)\])?")


@dataclass(frozen=True)
class Mistake:
    """A mistake.

    Attributes:
        rule: its name in ``RULES``.
        path: the file.
        line: its line, from 1.
        column: its column, from 1.
        text: what is wrong.
        fix: what to do.
    """

    rule: str
    path: Path
    line: int
    column: int
    text: str
    fix: str


def mistake(rule: str, file: File, node: cst.CSTNode, text: str, fix: str) -> Mistake:
    """Return a mistake at a node."""
    return Mistake(rule, file.path, file.line(node), file.column(node), text, fix)


def unexcused(file: File, found: Iterable[Mistake]) -> Iterator[Mistake]:
    """Yield the mistakes, except those on lines with ``# collshim: ignore`` or ``# collshim: ignore[rule]``."""
    for one in found:
        comment = _IGNORED.search(file.lines[one.line - 1])
        if comment is None or not (comment[1] is None or one.rule in re.split(r"[,\s]+", comment[1])):
            yield one


def shortened(node: cst.CSTNode, longest: int = 60) -> str:
    """Return a node's source on one line."""
    text = " ".join(cst.Module([]).code_for_node(node).split())
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
