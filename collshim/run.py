"""``collshim run``: a script as the ranks of one world, on one machine or several, by torch's elastic agent.

What the ranks print comes line by line, with the rank in front. Of a failure the first is told at the end, on standard
error; the exit code is the first failure's, 128 and the signal's number where a signal ended it.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

from collshim.adapting import patching, stand_in
from collshim.errors import ArgumentValueError

LOOPBACK = "127.0.0.1"
SIGNALLED = 128
"""Added to a signal's number it is the exit code, as in shells."""

_BOTH_STREAMS = "3"
"""Of torch's agent: standard output and standard error."""

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that the agent takes."""

_MACHINES = ("nnodes", "node_rank", "master_addr", "master_port")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``collshim run``; the names are torchrun's."""
    number, count = partial(_at_least, 0), partial(_at_least, 1)
    parser.add_argument(
        "-n", "-np", "--nproc-per-node", type=count, default=1, metavar="N", help="ranks on this machine"
    )
    parser.add_argument("--nnodes", type=count, default=1, metavar="N", help="machines (default: 1)")
    parser.add_argument("--node-rank", type=number, default=0, metavar="R", help="this machine among them, from 0")
    parser.add_argument("--master-addr", default=LOOPBACK, metavar="HOST", help="machine 0, as the others reach it")
    port = "a port of it (default: a free one)"
    parser.add_argument("--master-port", type=number, default=0, metavar="PORT", help=port)
    _add_frameworks(parser)
    parser.add_argument("--device", choices=["cpu"], help="what accelerators' names stand for where there are none")
    parser.add_argument("--devices", type=count, metavar="N", help="how many accelerators there then seem to be")
    logs = "keep what each rank prints in files below DIR"
    parser.add_argument("--log-dir", type=Path, metavar="DIR", help=logs)
    parser.add_argument(
        "--no-prefix", action="store_true", help="what ranks print comes as it is, without the rank in front"
    )
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module's name")
    parser.add_argument("script", metavar="SCRIPT", help="what every rank runs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


def _add_frameworks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as",
        dest="frameworks",
        action="append",
        default=[],
        metavar="FRAMEWORK",
        help="the script's `import FRAMEWORK` gives collshim.FRAMEWORK",
    )
    parser.add_argument(
        "--patch",
        dest="patches",
        action="append",
        default=[],
        metavar="FRAMEWORK",
        help="collshim carries the collectives of the real FRAMEWORK, which is installed here",
    )


def _at_least(least: int, text: str) -> int:
    expected = f"is {text!r}, should be a number of at least {least}"
    try:
        number = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(expected) from error
    if number < least:
        raise argparse.ArgumentTypeError(expected)
    return number


def start(chosen: argparse.Namespace) -> int:
    """Start the ranks and wait for them; 0, or the exit code of the first failure.

    Raises:
        ArgumentValueError: there is no such script or module.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as agent

    if chosen.frameworks:
        stand_in.require(chosen.frameworks)
    for framework in chosen.patches:
        patching.require(framework)
    _require_script(chosen)
    _set_environment(chosen)
    try:
        with _quiet_agent(), _logs(chosen) as logs:
            agent([f"--log-dir={logs}", *_agent_arguments(chosen)])
    except ChildFailedError as error:
        return _told(error, chosen)
    except SignalException as error:
        return SIGNALLED + error.sigval.value
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT
    return 0


def _set_environment(chosen: argparse.Namespace) -> None:
    """What the ranks inherit."""
    from collshim.rendezvous import register

    if chosen.frameworks:
        os.environ.update(stand_in.environment(chosen.frameworks))
    if chosen.patches:
        os.environ[patching.VARIABLE] = ",".join(chosen.patches)
    for name in ("device", "devices"):
        if getattr(chosen, name) is not None:
            os.environ[f"COLLSHIM_{name.upper()}"] = str(getattr(chosen, name))
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // chosen.nproc_per_node)))
    os.environ["PYTHONUNBUFFERED"] = "1"
    if chosen.nnodes == 1:
        register()
        os.environ["COLLSHIM_SECRET"] = os.environ.get("COLLSHIM_SECRET") or token_hex(32)


def _require_script(chosen: argparse.Namespace) -> None:
    if not chosen.module:
        if not Path(chosen.script).is_file():
            raise ArgumentValueError(f"there is no script {chosen.script} in {os.getcwd()}")
        return
    sys.path.insert(0, os.getcwd())
    try:
        found = importlib.util.find_spec(chosen.script)
    except ModuleNotFoundError:  # of the package that it is in
        found = None
    finally:
        del sys.path[0]
    if found is None:
        raise ArgumentValueError(f"there is no module {chosen.script} in {os.getcwd()}, nor on sys.path")


@contextmanager
def _quiet_agent() -> Iterator[None]:
    """Let the agent say nothing of what is told here, who failed first, and leave no handlers of signals behind."""
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
    """Where the agent writes what the ranks print; torchrun leaves a folder behind."""
    if chosen.log_dir is not None:
        chosen.log_dir.mkdir(parents=True, exist_ok=True)
        yield str(chosen.log_dir)
        return
    with TemporaryDirectory(prefix="collshim-run-") as folder:
        yield folder


def _told(error: Any, chosen: argparse.Namespace) -> int:
    """Say which rank failed first, and of what; the exit code."""
    rank, failure = error.get_first_failure()
    code, name = failure.exitcode, failure.signal_name()
    how = f"exit code {code}" if code >= 0 else f"signal {-code} ({name if name != '<N/A>' else 'unknown'})"
    lines = [f"collshim run: rank {rank} failed first (pid {failure.pid}, {how})"]
    if failure.error_file_data:  # which the rank has written itself
        message = failure.error_file_data["message"]
        lines.append(f"  {message['message'] if isinstance(message, dict) else message}")
    others = len(error.failures) - 1
    if others:
        lines.append(f"  {others} more {'ranks' if others > 1 else 'rank'} failed after it")
    if chosen.log_dir is not None:
        lines.append(f"  what the ranks printed: {chosen.log_dir}")
    print("\n".join(lines), file=sys.stderr)
    return int(code) if code > 0 else SIGNALLED - int(code)


def _agent_arguments(chosen: argparse.Namespace) -> Sequence[str]:
    from collshim.rendezvous import BACKEND

    machines = [f"--{name.replace('_', '-')}={getattr(chosen, name)}" for name in _MACHINES]
    alone = ["--nnodes=1", f"--rdzv-backend={BACKEND}", f"--rdzv-endpoint={LOOPBACK}:{chosen.master_port}"]
    where = [*alone, f"--local-addr={LOOPBACK}"] if chosen.nnodes == 1 else machines
    script = ["-m", chosen.script] if chosen.module else [chosen.script]
    number = f"--nproc-per-node={chosen.nproc_per_node}"
    tags = chosen.nproc_per_node * chosen.nnodes > 1 and not chosen.no_prefix
    if tags:
        os.environ["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = "[rank ${rank}] "  # the agent reads it
    logged = f"--tee={_BOTH_STREAMS}" if tags else f"--redirects={_BOTH_STREAMS if chosen.log_dir is not None else '0'}"
    return [number, logged, *where, "--module", "collshim.worker", *script, *chosen.arguments]
