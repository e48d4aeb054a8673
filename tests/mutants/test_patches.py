"""The patches, declared and made by a rule: enough of them, and each fits the code as it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from collshim.conformance.cases import COLLECTIVES
from collshim.conformance.mutants import tree
from collshim.conformance.mutants.declared import LAYERS, Patch, declared
from collshim.conformance.mutants.mechanical import CodeLocation, candidates, declared_harmless, mechanical
from collshim.conformance.mutants.mutant import Mutant, PatchError
from collshim.frameworks import FRAMEWORKS
from collshim.launching.kinds import RANK_KINDS
from tests.cuda_model.mutants import declared as for_gpus

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"
EVERY: list[Mutant] = [*declared(), *mechanical()]
FOR_GPUS = [patch for patch, _ in for_gpus()]


@pytest.mark.parametrize("mutant", [*EVERY, *FOR_GPUS], ids=lambda mutant: mutant.name)
def test_mutant_fits_and_changes_the_code(mutant: Mutant) -> None:
    baseline = tree.source(mutant)
    broken = mutant.apply(baseline)
    assert broken != baseline
    compile(broken, mutant.file, "exec")


def test_every_layer_and_adapter_has_enough_mutants() -> None:
    layers = Counter(patch.layer for patch in declared())
    assert layers.total() >= 50
    assert all(layers[layer] >= 10 for layer in LAYERS)
    assert all(any(patch.framework == framework for patch in declared()) for framework in FRAMEWORKS)
    assert len(mechanical()) >= 10


def test_names_and_collectives_are_known() -> None:
    assert max(Counter(mutant.name for mutant in EVERY).values()) == 1
    assert {name for patch in declared() for name in patch.collectives} <= set(COLLECTIVES)
    assert {patch.transport for patch in declared()} <= {"", *RANK_KINDS, "unchecked"}


def test_page_lists_every_declared_patch() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [patch.name for patch in declared() if f"| `{patch.name}` |" not in text] == []
    assert "| **" not in text, "one was not caught"


def test_harmless_mutants_exist_and_have_reasons() -> None:
    known = {place.name for place in candidates()}
    assert {entry["name"] for entry in declared_harmless()} <= known
    assert all(entry["reason"] for entry in declared_harmless())


def test_selection_of_places_is_stable() -> None:
    assert mechanical(12) == mechanical(12)
    assert mechanical(5)[:5] == mechanical(12)[:5]


BASELINE = """def one(x):
    return x[0] if x == 1 else [x[1:], 2]


def other(x):
    return x[0]
"""


def patch(old: str, within: str = "one") -> Patch:
    made = declared()[0]
    return replace(made, name="made", within=within, old=old, new="None")


def test_patch_applies_only_within_its_function() -> None:
    assert patch("x[0]", "other").apply(BASELINE) == BASELINE.replace("    return x[0]\n", "    return None\n")


def test_spaces_and_line_ends_do_not_matter() -> None:
    wrapped = BASELINE.replace("[x[1:], 2]", "[\n        x[1:],\n        2]")
    assert patch("else [ x[1:], 2]").apply(wrapped) == BASELINE.replace("else [x[1:], 2]", "None")


@pytest.mark.parametrize(
    ("old", "within", "told"),
    [("x[2]", "one", "occurs 0 times"), ("x", "other", "occurs 2 times"), ("x[0]", "third", "0 definitions of third")],
)
def test_unfit_patch_is_reported(old: str, within: str, told: str) -> None:
    with pytest.raises(PatchError, match=told.replace("[", r"\[")):
        patch(old, within).apply(BASELINE)


def test_rule_negates_or_shifts_an_index() -> None:
    found = {
        place.old: place.new for place in candidates() if place.file == "layout.py" and place.within == "concatenated"
    }
    assert found == {"stacked.dim() < 2": "stacked.dim() >= 2", "axis < 0": "axis >= 0", "axis == 0": "axis != 0"}


def test_one_copy_per_file_is_rounded() -> None:
    copies = [place for place in mechanical(3) if place.is_copy]
    assert len(mechanical(3)) == 3 + len(copies)
    assert len({place.file for place in copies}) == len(copies) >= 8
    place = next(one for one in copies if one.file == "transports/threads/messages.py")
    assert place.new.startswith("self.outputs[1].copy_((lambda one")
    assert place.new.endswith("(self.inputs[0]))")


def test_missing_place_is_reported() -> None:
    place: CodeLocation = mechanical()[0]
    with pytest.raises(PatchError, match="no such place"):
        place.apply("def nothing():\n    pass\n")
