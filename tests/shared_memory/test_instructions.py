"""What compilers make of the protocol's orders: the fence above all, whose absence no run on x86-64 would show."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from compile_core import FOLDER, ROOT
from tests.shared_memory.protocol.building import compiler, edited, run
from tests.shared_memory.protocol.faults import FAULTS, FENCE, Edit

pytestmark = [pytest.mark.processes, pytest.mark.slow]

FUNCTIONS = """
#include "slots.h"
void set(counter_t *counter, uint32_t value) { advance(counter, value); }
uint32_t get(counter_t *counter) { return load(counter); }
void doze(counter_t *counter, uint32_t seen) { sleep_on(counter, seen, 1.0); }
"""


class Processor(NamedTuple):
    """A processor, its compiler, and its instructions for the store, the fence and the look; a load; the count."""

    compilers: tuple[str, ...]
    flags: tuple[str, ...]
    set: str
    get: str
    doze: str


_ARM = ("aarch64-linux-gnu-gcc",)
_ARM_SET, _ARM_GET = r"\bstlr\b.*\bdmb\s+ish\b.*\bldr\b", r"\bldap?r\b"

PROCESSORS = {
    "x86-64": Processor(
        (),
        ("-fcf-protection=none",),
        r"\bmov.*(\bmfence\b|\block\b).*(\bmov|\bcmp|\btest)",
        r"\bmov",
        r"\block\b.*\b(mov|cmp).*\bsyscall\b",
    ),
    "armv8-a": Processor(
        _ARM,
        ("-march=armv8-a", "-mno-outline-atomics"),
        _ARM_SET,
        _ARM_GET,
        rf"\bldaxr\b.*\bstlxr\b.*{_ARM_GET}.*\bsyscall\b",
    ),
    "armv8.3-a": Processor(_ARM, ("-march=armv8.3-a",), _ARM_SET, _ARM_GET, rf"\bldaddal\b.*{_ARM_GET}.*\bsyscall\b"),
}
"""The usual processor; the oldest of ARM, whose atomics are loops; and one that has atomic instructions."""


@pytest.fixture(params=[pytest.param(name, marks=() if name == "x86-64" else pytest.mark.slow) for name in PROCESSORS])
def processor(request: pytest.FixtureRequest) -> Processor:
    if request.param == "x86-64" and platform.machine() != "x86_64":
        pytest.skip("this processor is not x86-64")
    return PROCESSORS[request.param]


def disordered(processor: Processor, folder: Path, edits: Sequence[Edit]) -> list[str]:
    """Return the functions without the instructions that order them."""
    (folder / "slots.h").write_text(edited(edits), encoding="utf-8")
    (folder / "functions.c").write_text(FUNCTIONS, encoding="utf-8")
    words = [
        *compiler(*processor.compilers),
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O3",
        *processor.flags,
        f"-I{folder}",
        f"-I{ROOT / FOLDER}",
    ]
    done = run([*words, "-S", str(folder / "functions.c"), "-o", str(folder / "functions.s")], 60)
    assert done.status == 0, done.output
    text = (folder / "functions.s").read_text(encoding="utf-8")
    orders = {"set": processor.set, "get": processor.get, "doze": processor.doze}
    bodies = {name: text.partition(f"\n{name}:")[2].partition(".size")[0] for name in orders}
    return [name for name, body in bodies.items() if not re.search(orders[name], body, re.DOTALL)]


def test_counters_have_ordered_instructions(processor: Processor, tmp_path: Path) -> None:
    assert disordered(processor, tmp_path, []) == []


def test_missing_fence_is_seen(processor: Processor, tmp_path: Path) -> None:
    assert disordered(processor, tmp_path, [Edit(FENCE, "")]) == ["set"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "function"),
    [("a counter is stored without release", "set"), ("a counter is loaded without acquire", "get")],
)
@pytest.mark.parametrize("name", ["armv8-a", "armv8.3-a"])
def test_missing_order_is_seen_on_arm(tmp_path: Path, name: str, fault: str, function: str) -> None:
    edit = FAULTS[fault].edit
    assert edit is not None
    assert function in disordered(PROCESSORS[name], tmp_path, [edit])
