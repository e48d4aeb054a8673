"""The model of the protocol, which spin searches for every order of the ranks' steps, and faults in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.shared_memory.protocol.building import HERE, compiler, run

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.timeout(1200)]

MODEL = HERE / "slots.pml"
SETTINGS = {
    "two ranks": ("-DRANKS=2",),
    "two ranks, one slot": ("-DRANKS=2", "-DSLOTS=1"),
    "two ranks with steps": ("-DRANKS=2", "-DSTEPS"),
    "two ranks that end": ("-DRANKS=2", "-DENDS"),
    "two ranks with steps that end": ("-DRANKS=2", "-DSTEPS", "-DENDS"),
    "three ranks": ("-DRANKS=3",),
    "three ranks with steps": ("-DRANKS=3", "-DSTEPS"),
}
VALUE, STUCK = "assertion violated", "invalid end state"
FAULTS = {
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
}
"""The switches that break a line, and what spin then finds: a wrong value, or ranks that wait forever."""

SEARCH = ("-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=4000")
SECONDS = 1100.0
GIGABYTES = 5
"""The memory that the largest searches need."""


def available_gigabytes() -> float:
    """Return the system's available memory."""
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    return int(found[1]) / 1e6 if found else 0.0


def searched(folder: Path, switches: tuple[str, ...]) -> str:
    """Search the model with these switches; return the output."""
    spin = shutil.which("spin")
    if spin is None:
        pytest.skip("spin is not there; Debian has it in spin")
    command = compiler()
    shutil.copy(MODEL, folder)
    for words in (
        [spin, "-a", *switches, MODEL.name],
        [*command, "-O2", "-w", *SEARCH, "-o", "pan", "pan.c"],
    ):
        done = run(words, 120, folder)
        assert done.status == 0, done.output
    found = run(["./pan", "-m5000000", "-w24"], SECONDS, folder)
    assert found.status == 0, found.output
    return found.output


@pytest.mark.parametrize("name", SETTINGS)
def test_no_order_of_steps_is_wrong(name: str, tmp_path: Path) -> None:
    if "three" in name and available_gigabytes() < GIGABYTES:
        pytest.skip(f"the search needs {GIGABYTES} gigabytes of memory")
    found = searched(tmp_path, SETTINGS[name])
    assert "errors: 0" in found, found
    assert not re.search(r"max search depth too small|out of memory|Search not completed", found), found
    assert re.search(r"unreached in proctype rank\s+\(0 of \d+ states\)", found), found  # each line of the model counts


@pytest.mark.parametrize("switches", FAULTS)
def test_fault_of_the_model_is_found(switches: str, tmp_path: Path) -> None:
    found = searched(tmp_path, tuple(switches.split()))
    assert "errors: 1" in found
    assert FAULTS[switches] in found
