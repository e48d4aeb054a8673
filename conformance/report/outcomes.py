"""The results of runs on the real frameworks, kept next to the declared faults, and ``docs/real-frameworks.md``.

``python -m collshim.conformance.report RUN.json ...`` keeps runs that ``collshim conformance --real --json`` wrote.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from collshim.conformance.cases import COLLECTIVES
from collshim.conformance.report.results import DEVIATION, FAIL, MISSING, PASS
from collshim.conformance.report.upstream import FOLDER
from collshim.conformance.report.verdicts import UNASKED
from collshim.conformance.reporting.markdown import bullets, table

Run = Mapping[str, Any]

_HEAD = """# The real frameworks

The suite that every adapter has to pass also runs on the frameworks themselves: the same bindings, cases and
comparisons, with the framework's own arrays, and ranks that its own launcher starts without collshim. This shows that
the bindings describe the framework and not the adapter.

    collshim conformance --framework oneflow --real --python PATH --json oneflow.json

PATH is an interpreter that has the framework and NumPy 1.23 or newer. If a case differs, the run fails, unless
`conformance/report/upstream/<framework>.toml` declares the difference: as a fault of the framework, or as something
that its CPU backend does not support. A declaration has the reason, the functions, the family of cases, and the text
that must appear. The run also fails if no case shows a declared fault any more. MegEngine is not in the tables, because
its collectives do not run on a CPU.

If a declared case ends the ranks, hangs them, or leaves them unusable, only one case of its family runs for each
function. The number of the cases that did not run is in brackets. `python -m collshim.conformance.report oneflow.json`
saves a run for this page.
"""


def kept(run: Run) -> dict[str, Any]:
    """Return the summary of a run: its subject, and for each collective the numbers of cases and of declared faults.

    Raises:
        ValueError: the run is not of a real framework, or did not pass.
    """
    if not run.get("real"):
        raise ValueError("the run is of an adapter, should be of a real framework (--real)")
    rows = {cell["collective"]: _row(cell) for cell in run["cells"]}
    failed = [name for name, row in rows.items() if row["cases"].get(FAIL)]
    if failed or run["stale"]:
        raise ValueError(f"the run has failures in {', '.join(failed)} and {len(run['stale'])} stale declarations")
    return {**{name: run[name] for name in ("real", "date", "asked by")}, "rows": rows}


def keep(run: Run, folder: Path = FOLDER) -> Path:
    """Write the summary next to the declarations and return the file; rows that were not run keep earlier numbers."""
    summary = kept(run)
    path = folder / f"{run['real']['framework']}.json"
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if earlier.get("real") == summary["real"]:
        summary["rows"] = earlier["rows"] | summary["rows"]
    path.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return path


def _row(cell: Mapping[str, Any]) -> dict[str, Any]:
    cases = [case for function in cell["functions"] for case in function["cases"]]
    declared = [case["why"].split("\n") for case in cases if case["outcome"] == DEVIATION]
    return {
        "functions": len(cell["functions"]),
        "missing": [function["name"] for function in cell["functions"] if function["outcome"] == MISSING],
        "cases": dict(Counter(case["outcome"] for case in cases)),
        "faults": dict(Counter(lines[0] for lines in declared)),
        "unasked": sum(lines[1:] == [UNASKED] for lines in declared),
    }


def page(folder: Path = FOLDER) -> str:
    """Return the text of ``docs/real-frameworks.md``."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return "\n".join([_HEAD, _overview(runs), *(line for run in runs for line in _section(run))])


def _overview(runs: Sequence[Run]) -> str:
    titles = ("", "version", "Python, NumPy", "spellings", "cases", "agree", "declared", "on")
    return table(titles, map(_line, runs))


def _line(run: Run) -> list[str]:
    real, rows = run["real"], run["rows"].values()
    cases, unasked = _total(rows, "cases"), sum(row["unasked"] for row in rows)
    return [
        f"[{real['framework']}](#{real['framework']})",
        real["version"],
        f"{real['python']}, {real['numpy']}",
        str(sum(row["functions"] for row in rows)),
        *(f"{number:,}" for number in (cases.total(), cases[PASS])),
        f"{cases[DEVIATION]:,} ({unasked:,})",
        run["date"],
    ]


def _section(run: Run) -> Iterator[str]:
    rows = run["rows"]
    yield f"## {run['real']['framework']}\n"
    yield table(("", "spellings", "cases", "agree", "declared"), _rows(rows))
    faults = _total(rows.values(), "faults")
    if faults:
        yield "Declared, with the number of cases:\n"
        yield bullets(f"{number}: {reason}" for reason, number in sorted(faults.items()))
    missing = sorted(name for row in rows.values() for name in row["missing"])
    if missing:
        yield f"Missing: {', '.join(f'`{name}`' for name in missing)}.\n"


def _rows(rows: Mapping[str, Any]) -> Iterator[list[str]]:
    for name in [name for name in COLLECTIVES if name in rows]:
        cases = Counter(rows[name]["cases"])
        yield [name, *map(str, (rows[name]["functions"], cases.total(), cases[PASS], cases[DEVIATION]))]


def _total(rows: Iterable[Mapping[str, Any]], part: str) -> Counter[str]:
    return sum((Counter(row[part]) for row in rows), Counter[str]())
