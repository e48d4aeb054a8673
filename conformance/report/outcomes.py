"""What runs on the real frameworks came to, kept beside what is declared of them, and ``docs/real-frameworks.md``.

``python -m collshim.conformance.report RUN.json ...`` keeps what ``collshim conformance --real --json RUN.json`` wrote.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from collshim.conformance.report.results import DEVIATION, FAIL, PASS
from collshim.conformance.report.upstream import FOLDER

Run = Mapping[str, Any]

_HEAD = """# The real frameworks

The suite that every adapter has to pass is run on the frameworks themselves too: the same bindings, cases and
comparisons, with the framework's own arrays, ranks that its own launcher starts, and no collshim on their side. So the
bindings speak the framework's language, not the adapter's.

    collshim conformance --framework oneflow --real --python PATH --json oneflow.json

PATH is an interpreter that has the framework and NumPy 1.23 or newer. A case that differs fails the run, unless
`conformance/report/upstream/<framework>.toml` declares it as a fault of the framework, or as beyond its CPU backend,
with the reason, the functions, the family of cases and the text that must be seen. A declaration that nothing shows
any more fails the run as well. MegEngine's collectives do not run on a CPU.

This page tells of the last runs; `python -m collshim.conformance.report oneflow.json` keeps a run for it.
"""


def kept(run: Run) -> dict[str, Any]:
    """What is kept of a run: what it was of, and how many cases of each collective and each declared fault there are.

    Raises:
        ValueError: the run is not one of a real framework.
    """
    if not run.get("real"):
        raise ValueError("the run is of an adapter, should be of a real framework (--real)")
    faults: Counter[str] = Counter()
    for told in _cases(run):
        if told["outcome"] == DEVIATION:
            faults[told["why"].partition("\n")[0]] += 1
    cells = {cell["collective"]: cell["count"] for cell in run["cells"]}
    facts = {name: run[name] for name in ("real", "date", "asked by", "seconds", "stale")}
    missing = sorted({one["name"] for cell in run["cells"] for one in cell["functions"] if one["outcome"] == "missing"})
    functions = sum(len(cell["functions"]) for cell in run["cells"])
    return {**facts, "functions": functions, "missing": missing, "cells": cells, "faults": dict(faults)}


def keep(run: Run, folder: Path = FOLDER) -> Path:
    """Write it beside the declarations; the file."""
    path = folder / f"{run['real']['framework']}.json"
    path.write_text(json.dumps(kept(run), indent=1) + "\n", encoding="utf-8")
    return path


def page(folder: Path = FOLDER) -> str:
    """The text of ``docs/real-frameworks.md``."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return "\n".join([_HEAD, *_overview(runs), *(line for run in runs for line in _section(run))])


def _cases(run: Run) -> Iterator[dict[str, Any]]:
    for cell in run["cells"]:
        for function in cell["functions"]:
            yield from function["cases"]


def _overview(runs: list[dict[str, Any]]) -> Iterator[str]:
    yield "| | version | Python, NumPy | spellings | cases | agree | declared | fail | on |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for run in runs:
        real, counts = run["real"], _total(run)
        cells = [
            f"[{real['framework']}](#{real['framework']})",
            real["version"],
            f"{real['python']}, {real['numpy']}",
            str(run["functions"]),
            *(f"{number:,}" for number in (counts.total(), counts[PASS], counts[DEVIATION], counts[FAIL])),
            run["date"],
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _section(run: Run) -> Iterator[str]:
    counts = {name: cell["cases"] for name, cell in run["cells"].items()}
    yield f"## {run['real']['framework']}\n"
    yield "| | cases | agree | declared |"
    yield "| --- | --- | --- | --- |"
    for name, found in counts.items():
        yield f"| {name} | {sum(found.values())} | {found.get(PASS, 0)} | {found.get(DEVIATION, 0)} |"
    yield ""
    if run["faults"]:
        yield "Declared, with the number of cases:\n"
        yield from (f"- {_capital(reason)}: {number}" for reason, number in sorted(run["faults"].items()))
        yield ""
    if run["missing"]:
        yield f"Not there: {', '.join(f'`{name}`' for name in run['missing'])}.\n"


def _total(run: Run) -> Counter[str]:
    return sum((Counter(cell["cases"]) for cell in run["cells"].values()), Counter[str]())


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
