"""One training in five dialects."""

from __future__ import annotations

import ast
import inspect
import math
import re
from pathlib import Path

import pytest

import collshim
from collshim.demo import picture
from collshim.demo.curves import TOLERANCE, Curves
from collshim.demo.training import digits, single
from collshim.demo.training.dialects import DIALECTS, averaging_line, train_all

pytestmark = pytest.mark.processes

LINES = 45


@pytest.fixture(scope="module")
def curves() -> Curves:
    data = digits.load()
    by_rank = collshim.launch(train_all, 4, ranks="processes", args=(data,), timeout=200)
    return Curves(by_rank, single.train(data))


def test_curves_are_bitwise_equal_on_every_rank(curves: Curves) -> None:
    assert [curves.equal(framework) for framework in curves.frameworks()] == [True] * 5


def test_curves_are_close_to_those_of_one_process(curves: Curves) -> None:
    assert max(map(curves.distance, curves.frameworks())) <= TOLERANCE
    assert curves.close()


def _texts(drawn: Path) -> set[str]:
    return set(re.findall(r"<text[^>]*>([^<]+)</text>", drawn.read_text(encoding="utf-8")))


def test_picture_on_the_page_is_up_to_date(curves: Curves, tmp_path: Path) -> None:
    picture.draw(curves, fresh := tmp_path / "demo.svg")
    assert _texts(fresh) == _texts(Path(collshim.__file__).resolve().parents[1] / "docs" / "demo.svg")


def test_model_learns(curves: Curves) -> None:
    assert curves.single[-1] < 0.2 * curves.single[0]


@pytest.mark.parametrize("framework", DIALECTS)
def test_dialect_is_short_and_imports_one_framework(framework: str) -> None:
    source = inspect.getsource(DIALECTS[framework])
    imports = [
        ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    spoken = {name for name in DIALECTS if any(f"collshim.{_package(name)}" in line for line in imports)}
    assert len(source.splitlines()) <= LINES
    assert spoken == {framework}


@pytest.mark.parametrize("framework", DIALECTS)
def test_displayed_line_is_in_the_source(framework: str) -> None:
    line = averaging_line(DIALECTS[framework])
    assert "all_reduce" in line
    assert line in inspect.getsource(DIALECTS[framework])


def test_single_bit_makes_curves_unequal() -> None:
    same, other = [1.0, 0.5], [1.0, math.nextafter(0.5, 1)]
    curves = Curves([{"A": same, "B": same}, {"A": same, "B": other}], same)
    assert [curves.equal("A"), curves.equal("B"), curves.count_equal()] == [True, False, 1]
    assert curves.close()


def test_loss_beyond_the_tolerance_is_not_close() -> None:
    assert not Curves([{"A": [1.0, 0.5 + 2 * TOLERANCE]}], [1.0, 0.5]).close()


def _package(framework: str) -> str:
    return "torch" if framework == "PyTorch" else framework.lower()
