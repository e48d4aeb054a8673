"""What is said of steps that do not train, fail, are not deterministic, or begin otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from collshim.errors import ArgumentValueError, RankError
from collshim.invariance.against import compare_programs
from collshim.invariance.check import DIFFERENT, SAME, UNCERTAIN, Report, check
from collshim.invariance.parameters import Parameters
from collshim.invariance.program import Program, Switches
from collshim.invariance.records import RankRecord
from collshim.invariance.tracing import Trace
from tests.invariance import steps

# torch's optimizers warn of its own use of torch.jit.
pytestmark = [pytest.mark.threads, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def report_on(name: str, sizes: Sequence[int] = (2,), **switches: object) -> Report:
    program = Program.found(f"{steps.__file__}:{name}")
    return check(program, sizes, None, Switches(kind="threads", **switches))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["right", "not_run", "without_a_model"])
def test_right_step_is_the_same(name: str) -> None:
    report = report_on(name, (1, 2, 4))
    assert report.code == SAME
    assert [run.size for run in report.comparisons] == [2, 4]
    assert {finding.kind for finding in report.comparisons[0].parameters} == {"1"}


@pytest.mark.parametrize(
    "name", ["under_autocast", "recurrent", "by_name", "sparse", "rate_by_ranks", "sharded_by_name"]
)
def test_right_step_of_another_form_raises_no_alarm(name: str) -> None:
    report = report_on(name, (2, 4))
    assert (report.code, report.verdict()) == (SAME, report.verdict())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("adam_without_a_reduction", ["2.weight", "2.bias"]),
        ("ending_apart", ["0.weight", "0.bias", "2.weight", "2.bias"]),
        ("two_models", ["second.0.weight", "second.0.bias", "second.2.weight", "second.2.bias"]),
    ],
)
def test_ranks_that_part_are_found(name: str, wrong: list[str]) -> None:
    findings = report_on(name).comparisons[0].wrong
    assert [finding.name for finding in findings] == wrong
    assert {finding.kind for finding in findings} == {"differs between ranks"}


@pytest.mark.parametrize("name", ["untrained", "changed_by_decay_alone"])
def test_step_that_does_not_train_fails(name: str) -> None:
    report = report_on(name)
    assert report.code == DIFFERENT
    assert "does not train" in report.verdict()


def test_parameter_that_one_rank_does_not_have_is_told() -> None:
    report = report_on("with_more_on_several", (2, 4))
    wrong = [finding.name for finding in report.comparisons[0].wrong]
    assert wrong == ["second.0.weight", "second.0.bias", "second.2.weight", "second.2.bias"]
    assert "4 of 8 parameters are not on one rank" in report.verdict()
    assert not any("failed" in note for note in report.notes)


def test_one_rank_alone_is_nothing_to_compare() -> None:
    with pytest.raises(ArgumentValueError, match="should include a number above 1"):
        report_on("right", (1,))


def test_two_programs_that_do_not_train_do_not_agree() -> None:
    program = Program.found(f"{steps.__file__}:untrained")
    found = compare_programs(program, program, (2,), Switches(kind="threads"))
    assert found.code == DIFFERENT
    assert "does not train" in found.verdict()


def test_unused_parameter_is_told() -> None:
    report = report_on("unused")
    kinds = {finding.name: finding.kind for finding in report.comparisons[0].parameters}
    assert report.code == SAME
    assert (kinds["unused.weight"], kinds["used.0.weight"]) == ("unused", "1")


def test_nondeterminism_is_no_difference_between_ranks() -> None:
    report = report_on("unsteady")
    assert report.code == UNCERTAIN
    assert "two runs on one rank differ" in report.verdict()


def test_infinite_gradient_cannot_be_judged() -> None:
    report = report_on("infinite")
    assert report.code == UNCERTAIN
    assert "are infinite or NaN" in report.verdict()


def test_failure_on_several_ranks_is_told() -> None:
    report = report_on("failing")
    assert report.code == DIFFERENT
    assert "fails on 2 ranks: rank 1 of 2 failed: ValueError: the batch is too small" in report.verdict()


def test_failure_on_one_rank_is_raised() -> None:
    with pytest.raises(RankError, match="should return losses, modules"):
        report_on("nothing")


def test_first_values_of_one_rank_replace_others() -> None:
    report = report_on("of_another_seed")
    assert report.code == SAME
    assert report.comparisons[0].loaded == 4
    assert any("4 parameters received the initial values" in note for note in report.notes)


def test_dropout_is_off_and_told() -> None:
    assert any("dropout was off (1 line)" in note for note in report_on("right").notes)


def test_dropout_that_is_kept_differs() -> None:
    assert report_on("right", keeps_dropout=True).code == DIFFERENT


def test_masks_that_differ_are_found_without_dropout() -> None:
    report = report_on("masks_that_differ")
    assert report.code == DIFFERENT
    assert report.culprits[0].what == "dropout"
    assert "hold the same activation" in report.verdict()


def test_lost_gradient_is_named_with_its_line() -> None:
    report = report_on("detached")
    kinds = {finding.name: finding.kind for finding in report.comparisons[0].parameters}
    assert (kinds["0.weight"], kinds["2.weight"]) == ("no gradient", "1")
    assert report.culprits[0].what == "detach"
    assert f"{report.culprits[0].site} detach: cuts off the gradient" in report.summary()


class _Finishing:
    """A work whose outputs hold their values after a wait alone, as if the data had arrived in other memory."""

    def __init__(self, outputs: torch.Tensor) -> None:
        self.outputs = outputs

    def done(self) -> bool:
        return True

    def wait(self) -> torch.Tensor:
        return self.outputs.mul_(2)


def test_outputs_are_read_after_a_wait() -> None:
    outputs = torch.ones(3)
    trace = Trace(RankRecord(), Parameters(), keeps=True, keeps_dropout=False)
    event = trace.called("all_reduce(sum)", outputs, (0, 1))
    trace.started(event, _Finishing(outputs), outputs)
    assert (event.before is not None and event.before.tolist()) == [1, 1, 1]
    assert (event.value is not None and event.value.tolist()) == [2, 2, 2]
