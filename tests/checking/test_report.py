"""``collshim check``: its text, JSON, SARIF and exit codes; names that behave differently."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from collshim.__main__ import main
from collshim.checking import adapters
from collshim.checking.adapters import Missing
from collshim.checking.differences import DIFFERENCES, page_of
from collshim.checking.mistakes import RULES
from collshim.frameworks import FRAMEWORKS

DOCS = Path(__file__).parents[2] / "docs"
PROGRAM = """\
import mindspore as ms
from mindspore import nn
from mindspore.communication import comm_func, get_rank

ms.set_seed(1)
x = ms.Tensor([1.0])
if get_rank() == 0:
    x, _ = comm_func.all_reduce(x)
layer = nn.NoLayer()
"""
SHOWN = """\
1 file, MindSpore: names 5 supported, 1 different, 1 missing; 1 mistake

missing
  mindspore.nn.NoLayer  compute it with torch
      script.py:9

different
  mindspore.set_seed  random numbers differ from the framework's for the same seed (docs/mindspore.md#what-differs)
      script.py:5

supported
"""
MISTAKES = """\
mistakes
  rank-branch  script.py:8  all_reduce is called only on ranks that take one branch of `if get_rank() == 0`; it waits
  for the others
      x, _ = comm_func.all_reduce(x)
      Fix: call it on every rank, outside the condition
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the program into the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "script.py"
    path.write_text(PROGRAM)
    return path


def _printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["check", *words])
    return code, "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())


@pytest.mark.usefixtures("script")
def test_report_shows_names_then_mistakes_then_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = _printed(capsys, "script.py")
    assert code == 1
    assert text.startswith(SHOWN)
    assert MISTAKES in text
    assert re.search(r"\nRecommended: patch. The adapter lacks 1 name: run MindSpore itself: `collshim run", text)


@pytest.mark.usefixtures("script")
def test_all_shows_the_lines_of_supported_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        "  mindspore.communication.get_rank\n      script.py:3 script.py:7\n"
        in _printed(capsys, "script.py", "--all")[1]
    )


@pytest.mark.usefixtures("script")
def test_json_has_every_use_and_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = _printed(capsys, "script.py", "--json")
    found: dict[str, Any] = json.loads(text)
    assert (code, found["code"], found["files"]) == (1, 1, 1)
    uses = [(use["name"], use["line"], use["standing"]) for use in found["names"]]
    assert ("mindspore.nn.NoLayer", 9, "missing") in uses
    assert ("mindspore.set_seed", 5, "different") in uses
    assert [(one["rule"], one["path"], one["line"]) for one in found["mistakes"]] == [("rank-branch", "script.py", 8)]
    assert found["fits"]["mindspore"]["kind"] == "patch"


@pytest.mark.usefixtures("script")
def test_sarif_points_to_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = json.loads(_printed(capsys, "script.py", "--sarif")[1])
    (run,) = found["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    seen = {
        result["ruleId"]: (result["level"], result["locations"][0]["physicalLocation"]) for result in run["results"]
    }
    assert found["version"] == "2.1.0"
    assert set(seen) == {"missing-name", "different-name", "rank-branch"} <= rules
    assert seen["rank-branch"] == (
        "error",
        {"artifactLocation": {"uri": "script.py"}, "region": {"startLine": 8, "startColumn": 12}},
    )
    assert seen["different-name"][0] == "note"


def test_script_in_order_ends_with_zero(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text("import mindspore as ms\nprint(ms.Tensor([1.0]).asnumpy())\n")
    code, text = _printed(capsys, str(script))
    assert code == 0
    assert "\nRecommended: stand-in. The adapter has every name" in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["absent.py"], "there is no absent.py"),
        (["script.py", "--as", "jax"], "the framework is 'jax'"),
        (["cells.ipynb"], "cells.ipynb is a notebook"),
        (["empty"], "there is no Python file in empty"),
    ],
)
@pytest.mark.usefixtures("script")
def test_what_cannot_start_ends_with_two(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cells.ipynb").write_text('{"cells": []}')
    Path("empty").mkdir()
    assert main(["check", *words]) == 2
    assert capsys.readouterr().err.startswith(f"collshim check: check: {told}")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_names_that_differ_exist(framework: str) -> None:
    assert [name for name in DIFFERENCES[framework] if isinstance(adapters.look_up(name), Missing)] == []


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_page_of_differences_exists(framework: str) -> None:
    page, _, anchor = page_of(framework).partition("#")
    titles = re.findall(r"^## (.*)$", (DOCS.parent / page).read_text(), re.MULTILINE)
    assert anchor in [re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles]


def test_page_shows_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "check.md").read_text()
    program, shown = re.findall(r"```(?:py|console)\n(.*?)```", page, re.DOTALL)[:2]
    Path("train.py").write_text(program)
    code, text = _printed(capsys, "train.py")
    # Whether MindSpore is installed, or can be, depends on the machine.
    assert _before_installing(f"$ collshim check train.py\n{text}") == _before_installing(shown)
    assert code == 1


def _before_installing(text: str) -> list[str]:
    return text.partition("train.py`;")[0].split()


def test_page_lists_every_rule() -> None:
    page = (DOCS / "check.md").read_text()
    assert [rule for rule in RULES if f"`{rule}`" not in page] == []
