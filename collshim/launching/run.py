"""``collshim run``: run a script as the ranks of one world, on one or several machines, with torch's elastic agent.

The ranks' output is shown line by line, prefixed by the rank. The first failure is reported at the end, on standard
error. The exit code is the first failure's: 128 plus the signal's number if a signal ended it.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

from collshim import processors
from collshim.errors import FULL, ArgumentValueError, MissingNameError, is_consequence
from collshim.launching import prefixes, telling
from collshim.logs.command import show_after_failure
from collshim.logs.files import VARIABLE, how_to_read
from collshim.patching import patch
from collshim.standing_in import stand_in

LOOPBACK = "127.0.0.1"
SIGNALLED = 128
"""The exit code is this plus the signal's number, as in shells."""

_NEITHER_STREAM, _BOTH_STREAMS = "0", "3"
"""The values by which torch's agent selects standard output and standard error."""

_NOT_AVAILABLE = "<N/A>"
"""The text that torch has for a signal without a name, and for a rank that has no error file."""

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that the agent handles."""


def start(chosen: argparse.Namespace) -> int:
    """Start the ranks and wait for them; return 0, or the exit code of the first failure.

    Raises:
        ArgumentValueError: there is no such script or module, or it is not Python.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import run as agent

    if chosen.frameworks:
        stand_in.require(chosen.frameworks)
    for framework in chosen.patches:
        patch.require(framework)
    _require_script(chosen)
    _set_environment(chosen)
    began = time.time()
    try:
        with _quiet_agent(), prefixes.coloured(), _logs(chosen) as logs:
            try:
                agent(argparse.Namespace(**vars(chosen) | _agent_options(chosen) | {"log_dir": logs}))
            except ChildFailedError as error:
                code = _report(error, chosen)  # while the ranks' files still exist
                if folder := os.environ.get(VARIABLE):
                    show_after_failure(Path(folder), began)
                return code
    except SignalException as error:
        return SIGNALLED + error.sigval.value
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT
    return 0


def _set_environment(chosen: argparse.Namespace) -> None:
    """Set the environment that the ranks inherit."""
    from collshim.launching.rendezvous import register

    if chosen.frameworks:
        os.environ.update(stand_in.environment(chosen.frameworks))
    if chosen.patches:
        os.environ[patch.VARIABLE] = ",".join(chosen.patches)
    if chosen.full_trace:
        os.environ[FULL] = "1"
    for name in ("device", "devices"):
        if getattr(chosen, name) is not None:
            os.environ[f"COLLSHIM_{name.upper()}"] = str(getattr(chosen, name))
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, processors.usable() // _count(chosen))))
    os.environ["PYTHONUNBUFFERED"] = "1"
    if _is_one_machine(chosen):
        register()
        os.environ["COLLSHIM_SECRET"] = os.environ.get("COLLSHIM_SECRET") or token_hex(32)


def _count(chosen: argparse.Namespace) -> int:
    from torch.distributed.run import determine_local_world_size

    try:
        return int(determine_local_world_size(chosen.nproc_per_node))
    except ValueError as error:
        raise ArgumentValueError(f"-n is {chosen.nproc_per_node}: {error}") from error


def _is_one_machine(chosen: argparse.Namespace) -> bool:
    """Return whether the ranks meet on loopback, because the user asked for no other rendezvous."""
    return chosen.standalone or (chosen.nnodes in ("1", "1:1") and chosen.rdzv_backend == "static")


def _require_script(chosen: argparse.Namespace) -> None:
    for option in ("no_python", "run_path"):
        if getattr(chosen, option):
            text = "every rank is a Python script or module, which reads each framework's environment"
            raise ArgumentValueError(f"--{option.replace('_', '-')} works only with torchrun: {text}")
    if not chosen.module:
        if not Path(chosen.training_script).is_file():
            raise ArgumentValueError(f"there is no script {chosen.training_script} in {os.getcwd()}")
        return
    sys.path.insert(0, os.getcwd())
    try:
        found = importlib.util.find_spec(chosen.training_script)
    except ModuleNotFoundError:  # of its parent package
        found = None
    finally:
        del sys.path[0]
    if found is None:
        raise ArgumentValueError(f"there is no module {chosen.training_script} in {os.getcwd()}, nor on sys.path")


@contextmanager
def _quiet_agent() -> Iterator[None]:
    """Silence the agent's log, since the first failure is reported here, and restore the signal handlers afterwards."""
    before = logging.root.manager.disable
    handlers = {number: signal.getsignal(number) for number in _HANDLED}
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _logs(chosen: argparse.Namespace) -> Iterator[str]:
    """Yield the folder where the agent writes the ranks' output; torchrun would leave a folder behind."""
    if chosen.log_dir is not None:
        chosen.log_dir.mkdir(parents=True, exist_ok=True)
        yield str(chosen.log_dir)
        return
    with TemporaryDirectory(prefix="collshim-run-") as folder:
        yield folder


def _report(error: Any, chosen: argparse.Namespace) -> int:
    """Print which rank failed first, and why; return the exit code."""
    rank, failure = _first_failure(error.failures)
    code, name = failure.exitcode, failure.signal_name()
    if code == -signal.SIGTERM and _message(failure):
        code = 1
    how = f"exit code {code}" if code >= 0 else f"signal {-code} ({name if name != _NOT_AVAILABLE else 'unknown'})"
    lines = [f"collshim run: {_subject(rank, chosen)} (pid {failure.pid}, {how})"]
    text = _message(failure)
    is_missing = text.startswith(MissingNameError.__name__)
    if text and not (is_missing and telling.is_told(failure.error_file)):
        lines.append(f"  {text}")
    stopped = sum(_was_stopped(other) for other in error.failures.values() if other is not failure)
    failed = len(error.failures) - 1 - stopped
    if failed:
        how = "failed after it" if not is_missing else "lack the name too" if failed > 1 else "lacks the name too"
        lines.append(f"  {failed} more {'ranks' if failed > 1 else 'rank'} {how}")
    if stopped:
        lines.append(f"  {stopped} more {'ranks were' if stopped > 1 else 'rank was'} stopped")
    if chosen.log_dir is not None:
        lines.append(f"  the ranks' output: {chosen.log_dir}")
    if calls := how_to_read():
        lines.append(f"  {calls}")
    print("\n".join(lines), file=sys.stderr)
    return int(code) if code > 0 else SIGNALLED - int(code)


def _subject(rank: int, chosen: argparse.Namespace) -> str:
    """Return what failed; a single process is not called a rank, because the script may start its ranks itself."""
    is_alone = _is_one_machine(chosen) and _count(chosen) == 1
    return "the script failed" if is_alone else f"rank {rank} failed first"


def _first_failure(failures: dict[int, Any]) -> tuple[int, Any]:
    """Return the rank that failed first, and its failure.

    A rank that the agent stopped did not fail. Of the others, a rank that only reports a second rank's failure comes
    after the second rank, however late the agent noticed the end of the second rank's process.
    """
    own = {rank: failure for rank, failure in failures.items() if not _was_stopped(failure)} or failures
    causes = {rank: failure for rank, failure in own.items() if not is_consequence(_message(failure))} or own
    first = min(causes, key=lambda rank: causes[rank].timestamp)
    return first, causes[first]


def _was_stopped(failure: Any) -> bool:
    """Return whether the agent ended the rank; a rank that was already failing has already written its error."""
    return failure.exitcode == -signal.SIGTERM and not _message(failure)


def _message(failure: Any) -> str:
    """Return the error text that a rank has written; empty if it has not."""
    if failure.error_file == _NOT_AVAILABLE:
        return ""
    message = failure.error_file_data["message"]
    return str(message["message"] if isinstance(message, dict) else message)


def _agent_options(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return torchrun's options as the command sets them."""
    from collshim.launching.rendezvous import BACKEND

    script = [*(["-m"] if chosen.module else []), chosen.training_script, *chosen.training_script_args]
    starts = str(Path(__file__).with_name("start.py"))
    options: dict[str, Any] = {"module": False, "training_script": starts, "training_script_args": script}
    if _is_one_machine(chosen):
        endpoint = f"{LOOPBACK}:{chosen.master_port or 0}"
        options |= {"standalone": False, "nnodes": "1", "local_addr": LOOPBACK}
        options |= {"rdzv_backend": BACKEND, "rdzv_endpoint": endpoint}
    if chosen.tee == chosen.redirects == _NEITHER_STREAM:
        options |= _output_options(chosen)
    return options


def _output_options(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the settings for showing the ranks' output, unless an option of torchrun's specifies them."""
    if chosen.no_prefix or (_count(chosen) == 1 and chosen.nnodes in ("1", "1:1")):
        return {"redirects": _NEITHER_STREAM if chosen.log_dir is None else _BOTH_STREAMS}
    os.environ["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = prefixes.TEMPLATE  # read by the agent
    return {"tee": _BOTH_STREAMS}
