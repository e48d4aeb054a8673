"""Differences of a real framework, beside its declarations."""

from __future__ import annotations

from pathlib import Path

import pytest

from collshim.conformance.bindings import bindings, find
from collshim.conformance.cases import Case
from collshim.conformance.report.listed import read
from collshim.conformance.report.results import DEVIATION, FAIL, PASS
from collshim.conformance.report.upstream import FOLDER, declared
from collshim.conformance.report.verdicts import Verdicts
from collshim.conformance.subject import module

REDUCE = find("torch.distributed.reduce")
FILE = """
[[fault]]
reason = "partial results"
functions = ["torch.distributed.reduce"]
cases = { size = [2, 3], ndim = 2, unequal = false }
seen = "tensor at"
lasting = true
"""


@pytest.fixture
def verdicts(tmp_path: Path) -> Verdicts:
    (tmp_path / "torch.toml").write_text(FILE)
    return Verdicts(declared("torch", tmp_path))


def test_declared_difference_is_a_deviation(verdicts: Verdicts) -> None:
    found = verdicts.verdict(REDUCE, Case("reduce"), ["rank 1: tensor at [0] is 1, should be 2"])
    assert found == (DEVIATION, "partial results\nrank 1: tensor at [0] is 1, should be 2")
    assert verdicts.stale() == []


def test_fault_hides_no_other_difference(verdicts: Verdicts) -> None:
    found = verdicts.verdict(REDUCE, Case("reduce"), ["tensor at [0] is 1", "the dtype of tensor is int8"])
    known = "beside a known deviation of the framework itself: partial results"
    assert found == (FAIL, f"the dtype of tensor is int8\n{known}\ntensor at [0] is 1")


def test_known_deviation_has_an_owner(tmp_path: Path) -> None:
    (tmp_path / "xfails").write_text("torch.distributed.reduce: Case('reduce')\n")
    verdicts = Verdicts.of(module("mine", "torch"), read(tmp_path / "xfails"))
    assert verdicts.owner(REDUCE, Case("reduce")) == f"mine, named in {tmp_path / 'xfails'}"
    assert verdicts.owner(REDUCE, Case("reduce", size=3)) == "torch itself"


def test_several_faults_can_explain_the_differences(tmp_path: Path) -> None:
    other = FILE.replace("partial results", "another dtype").replace("tensor at", "the dtype")
    (tmp_path / "torch.toml").write_text(f"{FILE}\n{other}")
    verdicts = Verdicts(declared("torch", tmp_path))
    found = verdicts.verdict(REDUCE, Case("reduce"), ["tensor at [0] is 1", "the dtype of tensor is int8"])
    assert found == (DEVIATION, "partial results\nanother dtype\ntensor at [0] is 1\nthe dtype of tensor is int8")
    assert verdicts.stale() == []


def test_fault_explained_by_an_earlier_one_is_current(tmp_path: Path) -> None:
    (tmp_path / "torch.toml").write_text(FILE + FILE.replace("partial results", "no kernel").replace("tensor at", ""))
    verdicts = Verdicts(declared("torch", tmp_path))
    assert verdicts.verdict(REDUCE, Case("reduce"), ["tensor at [0] is 1"])[0] == DEVIATION
    assert verdicts.stale() == []


@pytest.mark.parametrize("case", [Case("reduce", size=4), Case("reduce", shape=(2,))])
def test_case_outside_the_family_fails(verdicts: Verdicts, case: Case) -> None:
    assert verdicts.verdict(REDUCE, case, ["tensor at [0] is 1"]) == (FAIL, "tensor at [0] is 1")


def test_non_root_faults_excuse_no_root(tmp_path: Path) -> None:
    (tmp_path / "torch.toml").write_text(f"{FILE}off_root = true\n")
    verdicts = Verdicts(declared("torch", tmp_path))
    line = "rank 1: tensor at [0] is 1"
    assert verdicts.verdict(REDUCE, Case("reduce", root=0), [line])[0] == DEVIATION
    assert verdicts.verdict(REDUCE, Case("reduce", root=1), [line])[0] == FAIL
    assert verdicts.verdict(REDUCE, Case("reduce", root=0, group=(1, 0)), [line])[0] == FAIL


def test_unobserved_declaration_is_stale(verdicts: Verdicts) -> None:
    assert verdicts.verdict(REDUCE, Case("reduce"), []) == (PASS, "")
    assert verdicts.stale() == ["torch.distributed.reduce: known to deviate, but agrees: partial results"]


def test_timing_dependent_fault_need_not_be_observed(tmp_path: Path) -> None:
    (tmp_path / "torch.toml").write_text(f"{FILE}seldom = true\n")
    verdicts = Verdicts(declared("torch", tmp_path))
    assert verdicts.verdict(REDUCE, Case("reduce"), []) == (PASS, "")
    assert verdicts.stale() == []


def test_declaration_of_an_untested_function_is_current(verdicts: Verdicts) -> None:
    verdicts.verdict(REDUCE, Case("reduce", size=4), [])
    assert verdicts.stale() == []


def test_call_that_ends_ranks_is_tested_once(verdicts: Verdicts) -> None:
    assert verdicts.known(REDUCE, Case("reduce")) is None
    verdicts.verdict(REDUCE, Case("reduce"), ["tensor at [0] is 1"])
    known = verdicts.known(REDUCE, Case("reduce", seed=1))
    assert known is not None
    assert known[0] == DEVIATION
    assert verdicts.known(REDUCE, Case("reduce", size=4)) is None


@pytest.mark.parametrize(
    "entry", ['functions = ["a"]', 'reason = "r"', 'reason = "r"\nfunctions = ["a"]\ncases = { colour = 1 }']
)
def test_invalid_declaration_is_refused(tmp_path: Path, entry: str) -> None:
    (tmp_path / "torch.toml").write_text(f"[[fault]]\n{entry}\n")
    with pytest.raises(ValueError, match=r"torch\.toml: the fault"):
        declared("torch", tmp_path)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_declaration_names_tested_functions(file: Path) -> None:
    known = {binding.name for binding in bindings() if binding.framework.name == file.stem}
    named = [name for fault in declared(file.stem) for name in fault.functions]
    assert sorted(set(named) - known) == []
