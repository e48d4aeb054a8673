"""The runner distinguishes a caught fault from one that survives and one that cannot be imported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collshim.conformance.mutants import tree
from collshim.conformance.mutants.__main__ import main
from collshim.conformance.mutants.declared import Patch, declared
from collshim.conformance.mutants.page import page, total
from collshim.conformance.mutants.runner import CAUGHT, DEAD, SURVIVED, run_mutants

pytestmark = pytest.mark.processes


def patch(name: str) -> Patch:
    return next(one for one in declared() if one.name == name)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_fault_is_caught_by_a_named_comparison() -> None:
    fault = patch("oneflow-recv-returns-nothing")
    harmless = replace(fault, name="harmless", new="return (output)", transport="threads")
    dead = replace(fault, name="dead", within="", old="from __future__ import annotations", new="import nothing_there")
    verdicts = run_mutants([fault, harmless, dead])
    assert [verdict.outcome for verdict in verdicts] == [CAUGHT, SURVIVED, DEAD]
    assert verdicts[0].message.startswith("ring through oneflow.comm.")
    assert verdicts[0].test.startswith("test_adapters.py::")
    assert "3 mutants" not in total(verdicts[:1])
    assert "`oneflow-recv-returns-nothing`" in page(verdicts, 1)
    assert f"**{SURVIVED}**" in page(verdicts, 1)


def test_only_the_copy_has_the_fault(tmp_path: Path) -> None:
    fault = patch("stacked-for-concatenated")
    baseline = tree.source(fault)
    copy = tree.mutate(tree.copy(tmp_path / "baseline"), tmp_path / "copy", fault)
    assert (copy / "collshim" / "layout.py").read_text(encoding="utf-8") == fault.apply(baseline)
    assert tree.source(fault) == baseline
    assert not (copy / "collshim" / "torch").is_symlink()


def test_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-mutant"]) == 2
    assert "no-such-mutant" in capsys.readouterr().err
