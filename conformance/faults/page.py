"""``docs/faults.md``: the rules, the tables and an error as a user sees it, from one run of the scorer."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from itertools import groupby

import torch

from collshim.conformance.faults.program import place
from collshim.conformance.faults.rank import FACES, PROCESSES
from collshim.conformance.faults.report import count_rows, fault_rows, summary
from collshim.conformance.faults.scorer import DEADLINE, PATIENCE, Result
from collshim.conformance.faults.verdict import SLACK
from collshim.conformance.reporting.markdown import bullets, table

EXAMPLE = "op_other_collective"

INJECTED = "## Faults at any moment"
"""The heading of the part of the page that tests/robustness/injection writes."""

_HEAD = f"""# Faults

This page compares the errors of collshim and of torch for small programs with a mistake across three ranks. The
programs are in `conformance/faults/programs/`; each has a corrected twin, and uses only the names of
`torch.distributed`. `make faults` runs each program through collshim, with ranks as threads and as processes, and on
`torch.distributed` over gloo with and without `TORCH_DISTRIBUTED_DEBUG=DETAIL`. `collshim faults NAME ...` runs some of
them, and `--texts` prints every rank's error. `--adapter MODULE` and `--backend NAME` score your own module or backend:
see [conformance](conformance.md#10-programs-that-are-wrong).

`make faults` fails if collshim misses its goal: every class of faults caught on both transports, no twin that fails,
no rank killed by a signal, and an error on every rank within {SLACK:g} s after the deadline.

## How the errors are scored

A program's header names the class of the fault, the ranks to blame and the ranks that must report an error, and marks
the wrong line. Only the scorer reads the header. A wait may take {DEADLINE:g} s in every program.

- *Detected*: the library raised an error on every rank that must report one. A fault is not detected if a rank
  continued with the data that it had (*silent*), had not ended {PATIENCE:g} s after the start (*hang*), or was ended by
  a signal, which the table names.
- *Ranks named*: the error of every rank that is not to blame names every rank that is. If two calls contradict each
  other, the library cannot always know which rank is wrong, so the error may name both ranks.
- *Line shown*: the file and line of the wrong call are in the text of an error; or, if the ranks are named, in the
  traceback of a rank that is to blame.
- *False alarms*: twins that did not succeed on every rank.

A tick means that the error met the first three conditions in time. Otherwise *no rank* and *no line* say which
condition it missed.
"""


def page(results: Sequence[Result], faces: Sequence[str]) -> str:
    """Return the page's text."""
    titles = ("", *faces)
    parts = [
        _HEAD,
        "## The score\n",
        _where(),
        bullets([f"*{face}*: {FACES.get(face, face)}" for face in faces]),
        table(titles, count_rows(results, faces)),
        f"{_sentence(summary(results, faces))}\n",
        "## Every program\n",
        table(titles, fault_rows(results, faces)),
        *_errors(results),
        "## The programs\n",
        bullets(_programs(results)),
    ]
    return "\n".join(parts)


def merge(text: str, before: str) -> str:
    """Append to ``text`` the part of the page ``before`` on faults at any moment."""
    _, heading, rest = before.partition(INJECTED)
    return f"{text}\n{heading}{rest}" if heading else text


def _where() -> str:
    return f"torch {torch.__version__}, Python {platform.python_version()}, {platform.system()}.\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _errors(results: Sequence[Result]) -> list[str]:
    examples = [result for result in results if result.program.name == EXAMPLE and result.face == PROCESSES]
    if not examples:
        return []
    return [f"What rank 0 reports for `{EXAMPLE}`:\n", f"```\n{examples[0].score.texts.get(0, '')}\n```\n"]


def _programs(results: Sequence[Result]) -> list[str]:
    programs = sorted({result.program for result in results}, key=place)
    lines = []
    for fault, members in groupby(programs, lambda program: program.fault):
        items = [f"`{each.name}`: {each.summary}{_beyond(each.limit)}" for each in members]
        lines.append(f"{fault}\n" + "\n".join(f"  - {line}" for line in items))
    return lines


def _beyond(limit: str) -> str:
    return f" (no check can detect it: {limit})" if limit else ""
