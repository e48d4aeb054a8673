"""The pipes in C under ThreadSanitizer: silent as they are, and each of their faults is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared_memory.protocol.building import PIPES, THREADS, WAYS, build, compiler, edited, run
from tests.shared_memory.protocol.pipes_faults import FAULTS, PAUSES
from tests.shared_memory.test_protocol import PATIENT, SANITIZERS, is_right, prefix_of, started

pytestmark = [pytest.mark.processes, pytest.mark.slow]

STREAMS = {
    "two ranks that sleep": (2, 2048, 0),
    "two ranks that look": (2, 4096, 64),
    "three ranks, little room": (3, 1536, 0),
    "four ranks": (4, 2048, 8),
}
"""Ranks, the bytes of a pipe, and the looks before a sleep."""

MESSAGES, MANY = 4_000, 30_000
IMPATIENT = 2


def _words(name: str, messages: int, seconds: float, seed: int) -> list[str]:
    size, room, spins = STREAMS[name]
    return [str(word) for word in (size, messages, room, spins, seconds, seed)]


@pytest.fixture(scope="module", params=SANITIZERS)
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of the driver over ``pipes.h`` with pauses, under a sanitizer."""
    command, folder, flags = compiler(), tmp_path_factory.mktemp("pipes"), SANITIZERS[request.param]
    prefix = started({request.param: prefix_of(command, flags, folder)}, request.param)
    return [*prefix, str(build(folder, command, flags, edited(PAUSES, PIPES), PIPES))]


@pytest.mark.parametrize("name", STREAMS)
def test_messages_are_right(driver: list[str], name: str) -> None:
    for seed, messages in ((1, MESSAGES), (2, MESSAGES), (3, MANY)):
        done = run([*driver, *_words(name, messages, PATIENT, seed)], 280)
        assert is_right(done), done.output


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_pipes_is_found(name: str, tmp_path: Path) -> None:
    fault, command = FAULTS[name], compiler()
    prefix = started({"threads": prefix_of(command, THREADS, tmp_path)}, "threads")
    text = edited([fault.edit] if fault.edit else [], PIPES)
    for pause in PAUSES:
        text = text.replace(pause.old, pause.new)
    program = build(tmp_path, command, (*THREADS, fault.switch) if fault.switch else THREADS, text, PIPES)
    for seed in range(8):
        for stream in STREAMS:
            done = run([*prefix, str(program), *_words(stream, MESSAGES, IMPATIENT, seed)], 240)
            if not is_right(done):
                assert WAYS.get(done.status) in fault.ways, done.output
                return
    pytest.fail("no stream has shown the fault")
