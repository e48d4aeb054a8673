"""The result of a check: names, mistakes, and the recommended way to run the program."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collshim.checking.arithmetic import mistakes_in_arithmetic
from collshim.checking.branches import mistakes_in_flow
from collshim.checking.files import File, Unreadable, load
from collshim.checking.mistakes import Mistake, unexcused
from collshim.checking.names import Standing, Use, of_distributed, uses
from collshim.checking.program import Program, uses_framework
from collshim.checking.results import mistakes_in_results
from collshim.errors import ArgumentValueError
from collshim.frameworks import FRAMEWORKS

FINE, WRONG = 0, 1


@dataclass(frozen=True)
class Way:
    """A way to run a program.

    Attributes:
        kind: "stand-in", "patch" or "port".
        text: the reason, and the command.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Report:
    """The result of the check of a program.

    Attributes:
        scripts: the scripts and folders that were named.
        files: the number of files that were read.
        unreadable: the files that cannot be parsed.
        uses: the uses of the frameworks' names.
        mistakes: the mistakes.
    """

    scripts: Sequence[Path]
    files: int
    unreadable: Sequence[Unreadable]
    uses: Sequence[Use]
    mistakes: Sequence[Mistake]

    @property
    def code(self) -> int:
        """The command's exit code."""
        return WRONG if self.mistakes or self.unreadable or self.names("missing") else FINE

    @property
    def frameworks(self) -> list[str]:
        """The frameworks that the program uses, the most used first."""
        return [framework for framework, _ in Counter(use.framework for use in self.uses).most_common()]

    def names(self, standing: Standing, framework: str = "") -> dict[str, list[Use]]:
        """Return the names with this standing, each with its uses."""
        found: dict[str, list[Use]] = {}
        for use in self.uses:
            if use.standing == standing and framework in ("", use.framework):
                found.setdefault(use.name, []).append(use)
        return dict(sorted(found.items()))

    def ways(self) -> Mapping[str, Way]:
        """Return the recommended way for each framework."""
        return {framework: _way(self, framework) for framework in self.frameworks}


def check(scripts: Sequence[Path], framework: str = "") -> Report:
    """Read a program, and return the report on its names and calls.

    Args:
        scripts: scripts, and folders of scripts.
        framework: the only framework to look at; "" for all.

    Raises:
        ArgumentValueError: a script does not exist or is a notebook, a folder has no Python file, or collshim has no
            adapter for the framework.
    """
    absent = [str(script) for script in scripts if not script.exists()]
    if absent:
        raise ArgumentValueError(f"check: there is no {', '.join(absent)}")
    if framework and framework not in FRAMEWORKS:
        known = ", ".join(FRAMEWORKS)
        raise ArgumentValueError(f"check: the framework is {framework!r}, should be one of {known}")
    notebooks = [str(script) for script in scripts if script.suffix == ".ipynb"]
    if notebooks:
        text = "is a notebook: write its cells to a script first, with `jupyter nbconvert --to script`"
        raise ArgumentValueError(f"check: {', '.join(notebooks)} {text}")
    files, unreadable = load(scripts)
    if not files and not unreadable:
        raise ArgumentValueError(f"check: there is no Python file in {', '.join(map(str, scripts))}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names warn when they are looked up
        return _report_on(scripts, files, unreadable, framework)


def _report_on(
    scripts: Sequence[Path], files: Sequence[File], unreadable: Sequence[Unreadable], framework: str
) -> Report:
    program = Program(files)
    users = (file for file in program.files if uses_framework(file))
    found = [use for file in users for use in of_distributed(uses(file, program.values[file]))]
    chosen = [use for use in found if framework in ("", use.framework)]
    mistakes = [mistake for file in program.files for mistake in unexcused(file, _mistakes(file, program))]
    failures = [*unreadable, *program.unreadable]
    return Report(scripts, len(files), failures, chosen, sorted(mistakes, key=lambda one: (one.path, one.line)))


def _mistakes(file: File, program: Program) -> Iterator[Mistake]:
    yield from mistakes_in_flow(file, program)
    yield from mistakes_in_results(file, program)
    yield from mistakes_in_arithmetic(file, program)


def _way(report: Report, framework: str) -> Way:
    """Return the recommended way for a framework, which depends on what its adapter lacks."""
    entry = FRAMEWORKS[framework]
    missing = report.names("missing", framework)
    script = "SCRIPT" if report.scripts[0].is_dir() else report.scripts[0]
    if framework == "torch":
        text = 'keep torch, and use init_process_group("collshim"), or put collshim. in front of torch.distributed'
        return Way("stand-in", text)
    run = f"collshim run --as {framework} -n 2 {script}"
    if not missing:
        return Way("stand-in", f"the adapter has every name: `{run}`")
    lacks = f"the adapter lacks {len(missing)} {'name' if len(missing) == 1 else 'names'}"
    if entry.patched:
        return Way(
            "patch", f"{lacks}: run {entry.title} itself: `{run.replace('--as', '--patch')}`; {_here(framework)}"
        )
    port = f"{lacks}, and collshim does not run {entry.title} itself: replace them, or port to torch: docs/porting.md"
    return Way("port", port)


def _here(framework: str) -> str:
    """Return a text that says whether the real framework is installed here, or how to install it."""
    entry = FRAMEWORKS[framework]
    if importlib.util.find_spec(framework) is not None:
        return "it is installed here"
    newest = ".".join(map(str, entry.last_python))
    is_old_enough = sys.version_info[:2] <= entry.last_python
    release = f"{framework}=={entry.patched}"
    return f"pip install {release}" if is_old_enough else f"{release} needs Python {newest} or older"
