"""The examples in the docstrings of an installed MindSpore: found, run, and compared with the output that they show.

``python documented.py EXAMPLES ANSWERS`` is the program of one rank: it runs a file of examples one after another, and
writes the output, or the error, of each for its rank.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

MODULES = (
    *("communication/management", "communication/comm_func", "mint/distributed/distributed"),
    *("ops/function/comm_func", "ops/operations/comm_ops", "nn/wrap/grad_reducer"),
)
_SIZE = re.compile(r"run with (\d+) devices")
_OF_RANK = re.compile(r"^\W*(?:process with )?rank[ _]?(\d+)(?: and (\d+))?:?", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:e[+-]\d+)?")


@dataclass(frozen=True)
class Example:
    """The example of one docstring.

    Attributes:
        name: the function's, after its module's path.
        size: the number of ranks that it says it needs, else 2.
        source: the code.
        prints: the output that it shows.
    """

    name: str
    size: int
    source: str
    prints: str


def examples(mindspore: Path) -> Iterator[Example]:
    """Yield the examples of the modules that communicate."""
    for module in MODULES:
        for node in ast.walk(ast.parse((mindspore / f"{module}.py").read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and ">>>" in (ast.get_docstring(node) or ""):
                yield _example(f"{module}.{node.name}", str(ast.get_docstring(node)))


def _example(name: str, text: str) -> Example:
    steps = doctest.DocTestParser().get_examples(text)
    source = "".join(step.source for step in steps)
    said = _SIZE.search(text)
    size = int(said[1]) if said else 8 if re.search(r"rank_ids = \[0, ?[247]\]", source) else 2
    prints = "".join(step.want for step in steps if "print(" in step.source)
    return Example(name, 1 if "is_master=True" in source else size, source, prints)


def run_examples(asked: list[Example], option: str, size: int, folder: Path) -> dict[str, list[str]]:
    """Return each rank's output, or the error after "raised ", by the example's name."""
    (folder / "examples.json").write_text(json.dumps([asdict(example) for example in asked]))
    command = [sys.executable, "-m", "collshim", "run", "-n", str(size), option, "mindspore", __file__]
    environment = {**os.environ, "GLOG_v": "4", "PYTHONWARNINGS": "ignore", "COLLSHIM_TIMEOUT": "20"}
    arguments = [str(folder / "examples.json"), str(folder)]
    subprocess.run([*command, *arguments], env=environment, cwd=folder, timeout=300, check=True, capture_output=True)
    answers = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(size)]
    return {name: [answer[name] for answer in answers] for name in answers[0]}


def find_difference(example: Example, printed: list[str]) -> str:
    """Describe the differences from the example's numbers; return "" if there are none, or it shows none."""
    for rank, text in enumerate(printed):
        wanted = _numbers(_of_rank(example.prints, rank))
        if text.startswith("raised ") or (wanted and text and _numbers(text) != wanted):
            return f"{example.name}: rank {rank} of {len(printed)}: {text}, should be {example.prints}"
    return "" if not example.prints or any(printed) else f"{example.name}: nothing was printed"


def _of_rank(prints: str, rank: int) -> str:
    """Return the lines of this rank; all if none names a rank."""
    lines, kept, now = prints.splitlines(), [], True
    if not any(_OF_RANK.match(line) for line in lines):
        return prints
    for line in lines:
        said = _OF_RANK.match(line)
        if said:
            now, line = str(rank) in said.groups(), line[said.end() :]
        elif line.lower().startswith("other"):
            now = False
        kept += [line] if now else []
    return "\n".join(kept)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]


def _main(path: str, folder: str) -> None:
    printed = {}
    for example in json.loads(Path(path).read_text()):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(compile(example["source"], example["name"], "exec"), {"__name__": "__main__"})
            except Exception as error:  # each example reports its own; the others continue
                out.write(f"raised {type(error).__name__}: {error}")
        text = out.getvalue()
        printed[example["name"]] = text[text.find("raised ") :] if "raised " in text else text
    (Path(folder) / f"{os.environ['RANK']}.json").write_text(json.dumps(printed))


if __name__ == "__main__":
    _main(*sys.argv[1:])
