"""The protocol and the reductions compiled for ARM, in an emulator: values, wraps and sleeps are right.

The emulator runs on a processor of another kind, and reorders no more than that one does. The orders for ARM are those
of ``test_instructions``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.shared_memory.protocol.building import REDUCTION, Stream, build, compiler, edited, run
from tests.shared_memory.rings import WRAP
from tests.shared_memory.test_instructions import PROCESSORS

pytestmark = [pytest.mark.processes, pytest.mark.slow]

CALLS, PATIENT = 10_000, 60.0
STREAMS = [Stream(2, 2, 0, WRAP - CALLS // 2), Stream(4, 8, 16, WRAP // 2 - CALLS // 2)]


@pytest.fixture(scope="module")
def emulator() -> list[str]:
    found = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if found is None:
        pytest.skip("qemu-aarch64 is not there; Debian has it in qemu-user")
    return [found, "-cpu", "max"]


@pytest.mark.parametrize("processor", ["armv8-a", "armv8.3-a"])
def test_stream_is_right_in_an_emulator(emulator: list[str], tmp_path: Path, processor: str) -> None:
    compilers, flags, *_ = PROCESSORS[processor]
    program = build(tmp_path, compiler(*compilers), ("-static", *flags), edited([]))
    for stream in STREAMS:
        done = run([*emulator, str(program), *stream.words(CALLS, PATIENT, 1)], 250)
        assert done == (0, "every value was right\n"), done.output


def test_reductions_give_the_same_numbers_in_an_emulator(emulator: list[str], tmp_path: Path) -> None:
    flags, text = ("-O3", "-ffp-contract=off"), edited([], REDUCTION)
    found = []
    for name, command, more, before in (
        ("own", compiler(), (), []),
        ("arm", compiler(*PROCESSORS["armv8-a"][0]), ("-static",), emulator),
    ):
        (tmp_path / name).mkdir()
        program = build(tmp_path / name, command, (*flags, *more), text, REDUCTION)
        found.append(run([*before, str(program)], 250))
    assert found[0].status == 0
    assert " 0000000000000000" not in found[0].output
    assert found[0] == found[1]
