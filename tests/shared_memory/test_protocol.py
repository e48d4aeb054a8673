"""The protocol in C under ThreadSanitizer: silent as it is, and each of its faults is found."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.shared_memory.protocol.building import (
    THREADS,
    WAYS,
    Outcome,
    Stream,
    build,
    compiler,
    edited,
    run,
)
from tests.shared_memory.protocol.faults import FAULTS, LATE, PAUSES, Edit
from tests.shared_memory.rings import WRAP

pytestmark = [pytest.mark.processes, pytest.mark.slow]

HALF = WRAP // 2
STREAMS = {
    "two ranks, two slots": Stream(2, 2, 0, WRAP - 7_000),
    "three ranks, eight slots": Stream(3, 8, 64, HALF - 7_000),
    "four ranks, one slot": Stream(4, 1, 0, WRAP - 7_000),
    "five ranks, four slots": Stream(5, 4, 16, HALF - 7_000),
}
"""In the middle of a stream its steps begin, and its counters wrap around, or are half of the way there."""

CALLS, MANY_CALLS = 14_000, 100_000
PATIENT, IMPATIENT = 60.0, 2.0
"""Seconds of one wait: in a stream that must be right, and in one whose fault may show as a wait."""

SANITIZERS = {
    "threads": THREADS,
    "addresses": ("-fsanitize=address,undefined", "-fno-sanitize-recover"),
    "none": ("-Wall", "-Wextra", "-Werror"),
}
PROBE = "int main(void) { return 0; }"


@pytest.fixture(scope="session")
def command() -> list[str]:
    return compiler()


@pytest.fixture(scope="session", params=SANITIZERS)
def sanitizer(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def prefixes(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str] | str]:
    """Return what starts a program by sanitizer, or why none can run: ThreadSanitizer may need fixed addresses."""
    return {name: prefix_of(command, SANITIZERS[name], tmp_path_factory.mktemp(name)) for name in SANITIZERS}


def prefix_of(command: list[str], flags: tuple[str, ...], folder: Path) -> list[str] | str:
    (folder / "probe.c").write_text(PROBE, encoding="utf-8")
    done = run([*command, *flags, str(folder / "probe.c"), "-o", str(folder / "probe")], 60)
    if done.status:
        return f"the compiler has no sanitizer: {done.output.strip()}"
    for prefix in ([], ["setarch", "-R"]):
        if (not prefix or shutil.which(prefix[0])) and run([*prefix, str(folder / "probe")], 60).status == 0:
            return prefix
    return "no program runs under the sanitizer here"


def started(prefixes: dict[str, list[str] | str], name: str) -> list[str]:
    prefix = prefixes[name]
    if isinstance(prefix, str):
        pytest.skip(prefix)
    return prefix


def is_right(done: Outcome) -> bool:
    return done == (0, "every value was right\n")


@pytest.fixture(scope="session")
def driver(
    sanitizer: str,
    prefixes: dict[str, list[str] | str],
    command: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[str]:
    """Return the command of the driver over ``slots.h`` as it is."""
    prefix = started(prefixes, sanitizer)
    folder = tmp_path_factory.mktemp("driver")
    return [*prefix, str(build(folder, command, SANITIZERS[sanitizer], edited([])))]


@pytest.mark.parametrize("name", STREAMS)
def test_stream_is_right(driver: list[str], name: str) -> None:
    done = run([*driver, *STREAMS[name].words(CALLS, PATIENT, 1)], 240)
    assert is_right(done), done.output


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_long_streams_are_right(driver: list[str], name: str) -> None:
    for seed in (2, 3):
        stream = STREAMS[name]._replace(start=(STREAMS[name].start - MANY_CALLS // 2) % WRAP)
        done = run([*driver, *stream.words(MANY_CALLS, PATIENT, seed)], 280)
        assert is_right(done), done.output


@pytest.fixture(scope="session")
def pausing(
    prefixes: dict[str, list[str] | str], command: list[str], tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """Return the command of the driver with pauses between the protocol's steps, in which the other ranks act."""
    prefix, folder = started(prefixes, "threads"), tmp_path_factory.mktemp("pausing")
    return [*prefix, str(build(folder, command, THREADS, edited(PAUSES)))]


@pytest.mark.parametrize("name", STREAMS)
def test_stream_with_pauses_is_right(pausing: list[str], name: str) -> None:
    done = run([*pausing, *STREAMS[name].words(CALLS, PATIENT, 1)], 240)
    assert is_right(done), done.output


def faulty(fault: Edit | None) -> str:
    """Return ``slots.h`` with a fault, and with pauses between the steps that the fault has left."""
    text = edited([fault] if fault else [])
    for pause in PAUSES:
        text = text.replace(pause.old, pause.new)
    return text


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if LATE in FAULTS[name].ways else ()) for name in FAULTS]
)
def test_fault_is_found(name: str, prefixes: dict[str, list[str] | str], command: list[str], tmp_path: Path) -> None:
    fault, prefix = FAULTS[name], started(prefixes, "threads")
    program = build(tmp_path, command, (*THREADS, fault.switch) if fault.switch else THREADS, faulty(fault.edit))
    for seed in range(8):
        for stream in STREAMS.values():
            done = run([*prefix, str(program), *stream.words(CALLS, IMPATIENT, seed)], 120)
            if not is_right(done):
                assert WAYS.get(done.status) in fault.ways, done.output
                return
    pytest.fail("no stream has shown the fault")


def test_every_fault_differs_from_slots_h() -> None:
    whole = re.sub(r"\s+", " ", edited([]))
    assert [
        name for name, fault in FAULTS.items() if fault.edit and re.sub(r"\s+", " ", edited([fault.edit])) == whole
    ] == []
