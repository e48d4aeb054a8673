"""The models of the protocols, which spin searches for every order of the ranks' steps, and faults in them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.shared_memory.protocol.building import HERE, compiler, run

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.timeout(1200)]

VALUE, STUCK = "assertion violated", "invalid end state"


class Model(NamedTuple):
    """A model of a protocol.

    Attributes:
        ranks: its processes that stand for ranks; the others are the processor.
        settings: the switches of what is searched, by name.
        faults: the switches that break a line, and what spin then finds: a wrong value, or ranks that wait forever.
    """

    ranks: tuple[str, ...]
    settings: Mapping[str, str]
    faults: Mapping[str, str]


MODELS = {
    "slots.pml": Model(
        ("rank",),
        {
            "two ranks": "-DRANKS=2",
            "two ranks, one slot": "-DRANKS=2 -DSLOTS=1",
            "two ranks with steps": "-DRANKS=2 -DSTEPS",
            "two ranks that end": "-DRANKS=2 -DENDS",
            "two ranks with steps that end": "-DRANKS=2 -DSTEPS -DENDS",
            "three ranks": "-DRANKS=3",
            "three ranks with steps": "-DRANKS=3 -DSTEPS",
        },
        {
            "-DPOSTED_FIRST": VALUE,
            "-DRELEASED_FIRST": VALUE,
            "-DEARLY_ROOM": VALUE,
            "-DNO_FENCE": STUCK,
            "-DNO_WAKE": STUCK,
            "-DNO_COUNT": STUCK,
            "-DNO_COMPARISON": STUCK,
            "-DNO_WRAP": STUCK,
            "-DSTEPS -DSTAGE_BEHIND": VALUE,
            "-DENDS -DNO_SLICES": STUCK,
            "-DSLOTS=3": VALUE,
        },
    ),
    "pipes.pml": Model(
        ("writer", "reader"),
        {
            "two ranks": "-DROOM=4",
            "two ranks, a full pipe": "-DROOM=2",
            "two ranks, one of them far ahead": "-DROOM=4 -DTURNS=16 -DFRAMES=2 -DMESSAGES=8",
            "two ranks, odd room": "-DROOM=5 -DTURNS=16 -DMESSAGES=7",
            "two ranks, longer records": "-DROOM=7 -DTURNS=16 -DMESSAGES=6",
            "two ranks with releases": "-DROOM=4 -DTURNS=8 -DMESSAGES=3 -DRELEASES",
            "two ranks with releases, a full pipe": "-DROOM=2 -DRELEASES",
            "two ranks that send to one": "-DWRITERS=2 -DROOM=2 -DMESSAGES=4",
        },
        {
            "-DWRITTEN_FIRST": VALUE,
            "-DFILLER_ALONE": VALUE,
            "-DNO_FILLER": STUCK,
            "-DNO_UNIT": STUCK,
            "-DNO_SKIPPED": STUCK,
            "-DNO_WRAP": STUCK,
            "-DCOUNTS=ROOM": STUCK,
            "-DCOUNTS=7": STUCK,
            "-DTAKEN_FIRST": VALUE,
            "-DFILLER_TAKEN_FIRST": STUCK,
            "-DRECORD_FIRST": VALUE,
            "-DNO_TURN": VALUE,
            "-DNO_HOLD": VALUE,
            "-DRELEASES -DRELEASE_TURN": STUCK,
            "-DNO_WRITER_FENCE": STUCK,
            "-DNO_READER_FENCE": STUCK,
            "-DNO_WAKE": STUCK,
            "-DNO_LOOK": STUCK,
            "-DNO_WORD": STUCK,
            "-DNO_WORD_AGAIN": STUCK,
            "-DNO_DRAIN": STUCK,
        },
    ),
    "blocks.pml": Model(
        ("rank",),
        {"two ranks": "-DRANKS=2", "three ranks": "-DRANKS=3"},
        {
            "-DNO_WAIT": VALUE,
            "-DNO_FIRST_WAIT": VALUE,
            "-DCOUNTED_FIRST": VALUE,
            "-DFILLED_LATE": VALUE,
            "-DAHEAD": VALUE,
            "-DBUFFERS=1": VALUE,
            "-DNO_WRAP": STUCK,
        },
    ),
}

SEARCH = ("-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=4000")
SECONDS = 1100.0
GIGABYTES = 5
"""The memory that the largest searches need."""


def available_gigabytes() -> float:
    """Return the system's available memory."""
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    return int(found[1]) / 1e6 if found else 0.0


def searched(folder: Path, model: str, switches: str) -> str:
    """Search a model with these switches; return the output."""
    spin = shutil.which("spin")
    if spin is None:
        pytest.skip("spin is not there; Debian has it in spin")
    command = compiler()
    shutil.copy(HERE / model, folder)
    for words in (
        [spin, "-a", *switches.split(), model],
        [*command, "-O2", "-w", *SEARCH, "-o", "pan", "pan.c"],
    ):
        done = run(words, 120, folder)
        assert done.status == 0, done.output
    found = run(["./pan", "-m5000000", "-w24"], SECONDS, folder)
    assert found.status == 0, found.output
    return found.output


def pairs(field: str) -> list[tuple[str, str]]:
    """Return each model with each of its settings, or of its faults."""
    return [(name, key) for name, model in MODELS.items() for key in getattr(model, field)]


@pytest.mark.parametrize(("model", "name"), pairs("settings"))
def test_no_order_of_steps_is_wrong(model: str, name: str, tmp_path: Path) -> None:
    if "three" in name and available_gigabytes() < GIGABYTES:
        pytest.skip(f"the search needs {GIGABYTES} gigabytes of memory")
    found = searched(tmp_path, model, MODELS[model].settings[name])
    assert "errors: 0" in found, found
    assert not re.search(r"max search depth too small|out of memory|Search not completed", found), found
    for rank in MODELS[model].ranks:  # each line of the model counts
        assert re.search(rf"unreached in proctype {rank}\s+\(0 of \d+ states\)", found), found


@pytest.mark.parametrize(("model", "switches"), pairs("faults"))
def test_fault_of_the_model_is_found(model: str, switches: str, tmp_path: Path) -> None:
    found = searched(tmp_path, model, switches)
    assert "errors: 1" in found
    assert f"pan:1: {MODELS[model].faults[switches]}" in found  # the kinds alone are always listed
