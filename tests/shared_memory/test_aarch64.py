"""The protocol compiled for ARM, in an emulator: its values, wraps and sleeps are right.

The emulator runs on a processor of another kind, and reorders no more than that one does. The orders for ARM are those
of ``test_instructions``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.shared_memory.protocol.building import Stream, build, compiler, edited, run
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
