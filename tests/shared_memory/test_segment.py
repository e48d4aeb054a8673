"""The memory of a group: mapped by other processes, by them alone, and gone with the last of them."""

from __future__ import annotations

import os
import signal
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from collshim.transports.shared_memory import segment
from collshim.transports.shared_memory.segment import TOKEN_BYTES, Segment
from tests.shared_memory.children import Child, run_all

pytestmark = pytest.mark.processes

NBYTES = 3 * 4096
TOKEN = bytes(range(TOKEN_BYTES))
OTHER = bytes(TOKEN_BYTES)
_NOBODY = 65534


@pytest.fixture
def made() -> Iterator[tuple[int, Segment]]:
    """Make memory in this process; return its descriptor, which is open during the test, and the mapping."""
    file, own = segment.make(NBYTES, TOKEN)
    yield file, own
    os.close(file)


def joined(process: int, file: int, nbytes: int = NBYTES, token: bytes = TOKEN) -> Segment | None:
    return segment.join(process, file, nbytes, token)


def holders(inode: int) -> list[str]:
    """Return the processes that map or hold the memory with this inode, as far as this one may see them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            lines = (process / "maps").read_text(encoding="utf-8", errors="replace").splitlines()
            found += [process.name for line in lines if "memfd:collshim" in line and line.split()[4] == str(inode)]
            for file in (process / "fd").iterdir():
                state = file.stat()
                found += [process.name] if state.st_ino == inode and "memfd:collshim" in os.readlink(file) else []
    return found


def test_memory_of_another_process_is_joined(made: tuple[int, Segment]) -> None:
    file, own = made
    parent = os.getpid()

    def join() -> bool:
        found = joined(parent, file)
        assert found is not None
        assert bytes(found.memory[5000:5005]) == b"first"
        found.memory[6000:6006] = b"second"
        return found.token() == TOKEN

    own.memory[5000:5005] = b"first"
    assert run_all([join, join]) == [True, True]
    assert bytes(own.memory[6000:6006]) == b"second"


def test_memory_needs_no_descriptor_once_it_is_mapped() -> None:
    file, own = segment.make(NBYTES, TOKEN)
    found = joined(os.getpid(), file)
    os.close(file)
    assert found is not None
    own.memory[-1] = 7
    assert found.memory[-1] == 7


@pytest.mark.parametrize("token", [OTHER, TOKEN[:-1] + b"!", b""], ids=["other", "almost", "none"])
def test_wrong_token_is_refused(made: tuple[int, Segment], token: bytes) -> None:
    assert joined(os.getpid(), made[0], token=token) is None


@pytest.mark.parametrize("nbytes", [NBYTES - 1, NBYTES + 1, 2 * NBYTES, 4096])
def test_wrong_size_is_refused(made: tuple[int, Segment], nbytes: int) -> None:
    assert joined(os.getpid(), made[0], nbytes) is None


def test_pipes_are_refused() -> None:
    ends = os.pipe()
    try:
        assert [joined(os.getpid(), end) for end in ends] == [None, None]
    finally:
        for end in ends:
            os.close(end)


def test_sockets_are_refused() -> None:
    with closing(socket.socket()) as one, closing(socket.socket(socket.AF_UNIX)) as other:
        assert [joined(os.getpid(), end.fileno()) for end in (one, other)] == [None, None]


@pytest.mark.parametrize("path", ["/", "/dev/zero", "/dev/null"])
def test_folders_and_devices_are_refused(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        assert joined(os.getpid(), file) is None
    finally:
        os.close(file)


def test_other_file_of_the_same_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(NBYTES - TOKEN_BYTES) + TOKEN)
    with path.open("rb+") as file:
        assert joined(os.getpid(), file.fileno()) is None


def test_closed_descriptor_is_refused() -> None:
    file, _ = segment.make(NBYTES, TOKEN)
    os.close(file)
    assert joined(os.getpid(), file) is None


def test_process_that_does_not_exist_is_refused(made: tuple[int, Segment]) -> None:
    with Child(os.getpid) as child:
        child.kill()
        assert joined(child.pid, made[0]) is None


def test_refused_memory_is_not_left_open(made: tuple[int, Segment]) -> None:
    before = set(os.listdir("/proc/self/fd"))
    for token in (OTHER, TOKEN):
        joined(os.getpid(), made[0], token=token)
        joined(os.getpid(), made[0], 4096, token=token)
    assert set(os.listdir("/proc/self/fd")) == before


def test_memory_has_no_name(made: tuple[int, Segment]) -> None:
    state = os.fstat(made[0])
    assert os.readlink(f"/proc/self/fd/{made[0]}").startswith("/memfd:collshim")
    assert state.st_nlink == 0
    assert not Path("/dev/shm").exists() or state.st_dev != os.stat("/dev/shm").st_dev
    assert not [path for path in Path("/dev/shm").glob("*") if "collshim" in path.name]


def test_memory_is_for_its_user_alone(made: tuple[int, Segment]) -> None:
    assert stat.S_IMODE(os.fstat(made[0]).st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_other_user_cannot_open_the_memory(made: tuple[int, Segment]) -> None:
    owner = os.getpid()

    def tries() -> str:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
        try:
            os.close(os.open(f"/proc/{owner}/fd/{made[0]}", os.O_RDWR))
        except OSError as error:
            return f"{type(error).__name__}, joined: {joined(owner, made[0]) is not None}"
        return "opened"

    assert run_all([tries]) == ["PermissionError, joined: False"]


def test_memory_is_not_inherited_by_programs(made: tuple[int, Segment]) -> None:
    assert not os.get_inheritable(made[0])


def test_memory_of_other_bytes_has_no_token(made: tuple[int, Segment]) -> None:
    assert made[1].token() == TOKEN
    made[1].memory[0] ^= 1
    assert made[1].token() == b""


@pytest.mark.parametrize("last", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_processes_that_ended(last: signal.Signals) -> None:
    file, own = segment.make(NBYTES, TOKEN)
    inode, parent = os.fstat(file).st_ino, os.getpid()
    with Child(partial(keep, parent, file)) as one, Child(partial(keep, parent, file)) as other:
        for child in (one, other):
            has_mapped(child.pid, inode)
            os.kill(child.pid, last if child is other else signal.SIGKILL)
    del own
    os.close(file)
    assert holders(inode) == []


def keep(process: int, file: int) -> None:
    """Map memory once more, and keep it until a signal ends this process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    found = segment.join(process, file, NBYTES, TOKEN)
    time.sleep(600.0 if found else 0.0)


def has_mapped(process: int, inode: int) -> None:
    """Wait until a process has mapped memory more often than its parent, from which it has the first mapping."""
    limit = time.monotonic() + 30
    while holders(inode).count(str(process)) < 3:  # a mapping and a descriptor are its parent's
        assert time.monotonic() < limit
        time.sleep(0.01)
