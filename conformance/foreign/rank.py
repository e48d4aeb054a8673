"""The main program of a rank: ``rank.py FRAMEWORK PREFIX ADDRESS BACKEND MODULE``.

ADDRESS is the socket on which it receives requests. PREFIX is where the framework's functions are found (see
``places``), or empty for the framework's own. BACKEND is torch's, and MODULE registers it; both may be empty. Run by
its path, under an interpreter that has the framework but not collshim, the only modules of collshim that it imports
are those that need no others.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_NEEDED = ("bindings.rank_context", "cases", "foreign.differentiation", "foreign.wire")
"""The modules that an answer needs; importing them takes seconds on a busy machine."""


def alone() -> None:
    """Make the modules that need no others importable without the package."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]  # its modules have plain names
    spec = spec_from_file_location("collshim_record", HERE.parent / "record.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{HERE.parent / 'record.py'} does not exist, should be in the same folder as {HERE.name}")
    record = module_from_spec(spec)
    spec.loader.exec_module(record)
    record.alone()


def main(framework: str, prefix: str, address: str, backend: str, module: str) -> None:
    """Answer until a request to end arrives or the asking process is gone."""
    if prefix:
        with suppress(Exception):  # a case that needs it raises and reports this again
            import_module(prefix.partition("=")[2] or "torch")
    else:
        import_module(framework)  # slow, so done before connecting: once connected, a rank must answer soon
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        import_module(framework).communication.init()  # MindSpore's scheduler, which is not a rank
        return
    if module:
        import_module(module)
    for needed in _NEEDED:
        import_module(f"collshim.conformance.{needed}")
    rank, size = _place(framework, prefix)
    with _connect(address) as pipe:
        threading.Thread(target=_end_with, args=(pipe.fileno(),), daemon=True).start()
        pipe.send(rank)
        with suppress(EOFError, ConnectionResetError, BrokenPipeError):  # the asking process is gone
            _serve(framework, prefix, backend, rank, size, pipe)
    sys.stdout.flush()
    os._exit(0)  # skip what a framework does on exit


def _end_with(asker: int) -> None:
    """End this process when the asking process is gone, even if the framework waits in its own code for a lost rank."""
    there = select.poll()
    there.register(asker, getattr(select, "POLLRDHUP", select.POLLHUP))
    there.poll()
    os._exit(0)


def _serve(framework: str, prefix: str, backend: str, rank: int, size: int, pipe: Connection) -> None:
    from collshim.conformance.bindings.rank_context import RankContext
    from collshim.conformance.foreign.wire import pack

    if not prefix:
        _speak_natively(framework)
    address, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))
    place = RankContext(rank, size, prefix, address, port, backend or "gloo")
    request = pipe.recv()
    while request is not None:
        pipe.send_bytes(pack(_reply(place, *request)))
        request = pipe.recv()


def _reply(place: Any, name: str, line: str) -> Any:
    from collshim.conformance.bindings.answers import Failure
    from collshim.conformance.cases import Case
    from collshim.conformance.foreign.differentiation import spoken

    try:
        return spoken(name, place.prefix).answer(place, Case.parse(line))
    except Exception as error:
        return Failure.of(error)


def _speak_natively(framework: str) -> None:
    """Use the framework's own tensors as the kind that bindings call a tensor."""
    from collshim.conformance.bindings.kinds import KINDS
    from collshim.conformance.foreign.arrays import native

    KINDS["torch"] = native(framework)


def _place(framework: str, prefix: str) -> tuple[int, int]:
    """Return this process's rank and the size of its world, from its launcher's environment."""
    if prefix:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    from collshim.conformance.recorder.dialects import dialect

    return dialect(framework).place()


def _connect(address: str) -> Connection:
    caller = socket.socket(socket.AF_UNIX)
    caller.connect(address)
    return Connection(caller.detach())


if __name__ == "__main__":
    if not __package__:
        alone()
    main(*sys.argv[1:])
