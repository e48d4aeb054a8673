"""Write the pages of docs/ that are made from code: the training examples that ship, the bindings, the recordings.

``python docs/generate.py`` writes them; with ``--check`` it writes nothing, and exits with 1 if a page is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from collshim.frameworks import FRAMEWORKS

ROOT = Path(__file__).resolve().parents[1]
TRAINING = ROOT / "demo" / "training"
REAL = "docs/real-frameworks.md"
GRADIENTS = "docs/gradients.md"
SCORES = ("fault detected", "right ranks named", "right line shown", "ranks killed by a signal")
SCORES_BEGIN, SCORES_END = "<!-- scores, by docs/generate.py -->\n", "<!-- end of the scores -->\n"
BEGIN, END = "<!-- transitions, by docs/generate.py -->\n", "<!-- end of the transitions -->\n"

DEMO_HEAD = """# The demo

`make demo`, or `collshim demo` if the package is installed with its extras `cli` and `examples`, starts four ranks
as processes on this machine and

1. runs every documented example of the five frameworks through its adapter. It shows the call, the structure of the
   return value, and the inputs and outputs on each rank, with a tick if they are the same as in the framework's
   documentation. If the documentation is wrong, a note says so. The documented results are in `demo/expected/`;
   `--expected DIR` compares with the results in a different folder;
2. trains a small network on scikit-learn's digits five times, each time with one framework's calls. All five reduce
   the same numbers in the same order, so the five loss curves are equal to the last bit, and close to the curve of a
   single process. `--picture PATH` writes a picture of the curves to a file.

The last line of the output has the counts; the exit code is 1 if anything differs.

![Loss curves of five trainings, one per framework, on the curve of one process](demo.svg)

`collshim demo --picture docs/demo.svg` wrote this picture.

## The training step, five times

The model, the data and the optimizer are shared (`demo/training/`); only the communication differs.
"""


def demo_page() -> str:
    """Return the text of ``docs/demo.md``."""
    return DEMO_HEAD + "".join(_example(entry.title, entry.name) for entry in FRAMEWORKS.values())


def mixed_worlds_page() -> str:
    """Return the text of ``docs/mixed-worlds.md``, from the bindings of the conformance suite."""
    from collshim.conformance.mixed import page

    return page()


def real_frameworks_page() -> str:
    """Return the text of ``docs/real-frameworks.md``, from the last runs of the suite on the frameworks themselves."""
    from collshim.conformance.report.outcomes import page

    return page()


def gradients_page() -> str:
    """Return the text of ``docs/gradients.md``, which is written by hand, with the tables of transitions made anew."""
    from collshim.conformance.conventions.transitions import tables

    before, begin, rest = (ROOT / GRADIENTS).read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{GRADIENTS} has no place for the tables, should have the lines {BEGIN!r} and {END!r}")
    return f"{before}{begin}\n{tables()}\n{end}{after}"


def readme() -> str:
    """Return the text of ``README.md``, with the scores of ``docs/faults.md`` in its table."""
    faults = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in faults.splitlines() if line.startswith("| ")]
    found = {row[0]: row[2:5] for row in rows if len(row) == 5}
    lines = ["| | collshim | torch, gloo | with `TORCH_DISTRIBUTED_DEBUG=DETAIL` |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {' | '.join(found[name])} |" for name in SCORES]
    before, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition(SCORES_BEGIN)
    _, end, after = rest.partition(SCORES_END)
    if not end:
        raise ValueError(f"README.md has no place for the scores, should have {SCORES_BEGIN!r} and {SCORES_END!r}")
    return before + SCORES_BEGIN + "\n" + "\n".join(lines) + "\n\n" + end + after


def mismatch_picture() -> str:
    """Return ``docs/mismatch.svg``."""
    sys.path.insert(0, str(ROOT / "docs"))
    picture: Any = import_module("picture")
    return str(picture.mismatch_picture())


def torch_group_page() -> str:
    """Return the text of ``docs/torch-group.md``, a table of a group's methods."""
    from collshim.conformance.conventions.torch_group import page

    return page()


def _example(name: str, module: str) -> str:
    source = (TRAINING / f"{module}.py").read_text(encoding="utf-8").rstrip()
    return f"\n### {name}\n\n```python\n{source}\n```\n"


def pages() -> dict[str, Callable[[], str]]:
    """Return the function that makes each page's text, by the page's path."""
    from collshim.conformance.conventions.pages import pages

    return {
        "README.md": readme,
        "docs/mismatch.svg": mismatch_picture,
        "docs/demo.md": demo_page,
        GRADIENTS: gradients_page,
        "docs/mixed-worlds.md": mixed_worlds_page,
        "docs/torch-group.md": torch_group_page,
        REAL: real_frameworks_page,
        **pages(),
    }


def main(arguments: list[str]) -> int:
    """Write or check every page, and return the exit status."""
    texts = {path: page() for path, page in pages().items()}
    stale = [path for path, text in texts.items() if not _is_written(ROOT / path, text)]
    left = sorted(_made_before() - texts.keys())
    if "--check" in arguments:
        for path in [*stale, *left]:
            print(f"stale: {path}, run python docs/generate.py")
        return 1 if stale or left else 0
    for path in stale:
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(texts[path], encoding="utf-8")
        print(f"written: {path}")
    for path in left:
        (ROOT / path).unlink()
        print(f"removed: {path}")
    return 0


def _made_before() -> set[str]:
    """Return the pages of the folder that holds only generated pages."""
    return {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "differences").glob("*.md")}


def _is_written(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
