"""``collshim check``: mistakes that can be seen in the source, and code that resembles them."""

from __future__ import annotations

import pytest

from collshim.checking.mistakes import RULES
from tests.checking.conftest import Checked
from tests.checking.programs import TORCH, WRONG
from tests.checking.right_programs import RIGHT


@pytest.mark.parametrize("kind", WRONG)
def test_mistake_is_found(kind: str, checked: Checked) -> None:
    rule, imports, source = WRONG[kind]
    found = checked(imports + source)
    line = next(number for number, text in enumerate((imports + source).splitlines(), 1) if text.endswith("# here"))
    assert [(one.rule, one.line) for one in found.mistakes] == [(rule, line)]
    assert found.code == 1


@pytest.mark.parametrize("kind", RIGHT)
def test_correct_program_has_none(kind: str, checked: Checked) -> None:
    imports, source = RIGHT[kind]
    assert checked(imports + source).mistakes == []


def test_every_rule_has_a_program() -> None:
    assert {rule for rule, _, _ in WRONG.values()} == set(RULES)


def test_two_conditions_on_the_first_rank_do_not_balance_each_other(checked: Checked) -> None:
    source = "if is_main_process():\n    dist.monitored_barrier()\nif not args.local_rank:\n    dist.barrier()\n"
    found = checked(TORCH + source)
    assert [(one.rule, one.text.split()[0]) for one in found.mistakes] == [
        ("rank-branch", "monitored_barrier"),
        ("rank-branch", "barrier"),
    ]


@pytest.mark.parametrize(
    "excuse", ["# collshim: ignore", "# collshim: ignore[rank-branch]", "#collshim:ignore[a, rank-branch]"]
)
def test_excused_line_is_not_reported(excuse: str, checked: Checked) -> None:
    assert checked(f"{TORCH}if rank == 0:\n    dist.barrier()  {excuse}").mistakes == []


def test_excuse_of_another_rule_does_not_count(checked: Checked) -> None:
    assert checked(f"{TORCH}if rank == 0:\n    dist.barrier()  # collshim: ignore[rank-loop]").mistakes


def test_function_of_another_file_is_followed(checked: Checked) -> None:
    helper = "import torch.distributed as dist\n\ndef mean(x):\n    dist.all_reduce(x)\n"
    found = checked(f"{TORCH}from helper import mean\nif rank == 0:\n    mean(x)\n", helper=helper)
    assert [(one.rule, one.path.name) for one in found.mistakes] == [("rank-branch", "script.py")]
