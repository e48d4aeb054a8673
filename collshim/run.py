"""``collshim run``: a script as the ranks of one world, on one machine or several, by torch's elastic agent."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from secrets import token_hex
from tempfile import TemporaryDirectory

from collshim.adapting import patching, stand_in

LOOPBACK = "127.0.0.1"
_MACHINES = ("nnodes", "node_rank", "master_addr", "master_port")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``collshim run``; the names are torchrun's."""
    number, count = partial(_at_least, 0), partial(_at_least, 1)
    parser.add_argument("-n", "--nproc-per-node", type=count, default=1, metavar="N", help="ranks on this machine")
    parser.add_argument("--nnodes", type=count, default=1, metavar="N", help="machines (default: 1)")
    parser.add_argument("--node-rank", type=number, default=0, metavar="R", help="this machine among them, from 0")
    parser.add_argument("--master-addr", default=LOOPBACK, metavar="HOST", help="machine 0, as the others reach it")
    port = "a port of it (default: a free one)"
    parser.add_argument("--master-port", type=number, default=0, metavar="PORT", help=port)
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
    parser.add_argument("--device", choices=["cpu"], help="what accelerators' names stand for where there are none")
    parser.add_argument("--devices", type=count, metavar="N", help="how many accelerators there then seem to be")
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module's name")
    parser.add_argument("script", metavar="SCRIPT", help="what every rank runs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


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
    """Start the ranks and wait for them; 0, or the exit code that torch's agent gives a failure."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as agent

    from collshim.rendezvous import register

    if chosen.frameworks:
        stand_in.require(chosen.frameworks)
        os.environ.update(stand_in.environment(chosen.frameworks))
    for framework in chosen.patches:
        patching.require(framework)
    if chosen.patches:
        os.environ[patching.VARIABLE] = ",".join(chosen.patches)  # which the ranks read
    for name in ("device", "devices"):
        if getattr(chosen, name) is not None:
            os.environ[f"COLLSHIM_{name.upper()}"] = str(getattr(chosen, name))  # which the ranks inherit
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // chosen.nproc_per_node)))
    if chosen.nnodes == 1:
        register()
        os.environ["COLLSHIM_SECRET"] = os.environ.get("COLLSHIM_SECRET") or token_hex(32)
    try:
        with TemporaryDirectory(prefix="collshim-run-") as logs:  # torchrun leaves its own behind
            agent([f"--log-dir={logs}", *_agent_arguments(chosen)])
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        print(f"collshim run: rank {rank} failed first, exit code {failure.exitcode}")
        return failure.exitcode if failure.exitcode > 0 else 1
    return 0


def _agent_arguments(chosen: argparse.Namespace) -> Sequence[str]:
    from collshim.rendezvous import BACKEND

    machines = [f"--{name.replace('_', '-')}={getattr(chosen, name)}" for name in _MACHINES]
    alone = ["--nnodes=1", f"--rdzv-backend={BACKEND}", f"--rdzv-endpoint={LOOPBACK}:{chosen.master_port}"]
    where = [*alone, f"--local-addr={LOOPBACK}"] if chosen.nnodes == 1 else machines
    script = ["-m", chosen.script] if chosen.module else [chosen.script]
    number = f"--nproc-per-node={chosen.nproc_per_node}"
    return [number, *where, "--module", "collshim.worker", *script, *chosen.arguments]
