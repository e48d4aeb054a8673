"""``python -m collshim.oneflow.distributed.launch --nproc_per_node 2 script.py``, with OneFlow 0.9.0's options.

Every rank has MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK and GLOG_log_dir in its environment. If a rank
fails, the others are ended, and the launcher ends with ``subprocess.CalledProcessError``, exit code 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from collshim.adapting.absent import saying
from collshim.environment import forget

_LOOK = 0.05
"""Seconds between two checks of the ranks."""
_GRACE = 5.0
"""Seconds that a rank has to end after it is asked to."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="collshim.oneflow.distributed.launch", description="Start a script's ranks.")
    parser.add_argument("--nnodes", type=int, default=1, help="number of machines")
    parser.add_argument("--node_rank", type=int, default=0, help="number of this machine, from 0")
    parser.add_argument("--nproc_per_node", type=int, default=1, help="ranks on each machine")
    parser.add_argument("--master_addr", default="127.0.0.1", help="address of machine 0, as the others reach it")
    parser.add_argument("--master_port", type=int, default=29500, help="a free port of machine 0")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    parser.add_argument("--no_python", action="store_true", help="the script is a program, run without Python")
    parser.add_argument("--redirect_stdout_and_stderr", action="store_true", help="write ranks' output below logdir")
    parser.add_argument("--logdir", default="log", help="folder with one folder per rank")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the ranks of this machine and wait for them.

    Raises:
        ValueError: the port is invalid; both ``--module`` and ``--no_python`` are passed; the logdir is a file.
        subprocess.CalledProcessError: a rank failed.
    """
    chosen = _parser().parse_args(arguments)
    _require(chosen)
    shared = _environment(chosen)
    with ExitStack() as files:
        ranks = [_start(chosen, rank, shared, files) for rank in range(chosen.nproc_per_node)]
        try:
            _wait(ranks)
        finally:
            _end(ranks)


def _require(chosen: argparse.Namespace) -> None:
    if not 0 <= chosen.master_port < 2**16:
        raise ValueError(
            f"The port number of the master endpoint '{chosen.master_addr}:{chosen.master_port}' must be an integer "
            "between 0 and 65536."
        )
    if chosen.no_python and chosen.module:
        raise ValueError("--no_python and --module exclude each other: a module needs Python")
    if chosen.redirect_stdout_and_stderr and Path(chosen.logdir).is_file():
        raise ValueError(f"argument --logdir is {chosen.logdir!r}, a file, must be a path to a directory.")


def _environment(chosen: argparse.Namespace) -> dict[str, str]:
    environment = dict(os.environ)
    forget(environment)  # variables of this process's own launcher, such as Slurm or `collshim run`
    environment |= {
        "MASTER_ADDR": chosen.master_addr,
        "MASTER_PORT": str(chosen.master_port),
        "WORLD_SIZE": str(chosen.nproc_per_node * chosen.nnodes),
        "LOCAL_WORLD_SIZE": str(chosen.nproc_per_node),
    }
    if "OMP_NUM_THREADS" not in os.environ and chosen.nproc_per_node > 1:
        environment["OMP_NUM_THREADS"] = "1"
        line = "*" * 41
        print(
            f"{line}\nOMP_NUM_THREADS is 1 in each rank, since it was not set; more may be faster.\n{line}", flush=True
        )
    return environment


def _start(chosen: argparse.Namespace, local_rank: int, shared: dict[str, str], files: ExitStack) -> Any:
    folder = Path.cwd() / chosen.logdir / f"local_rank_{local_rank}"
    own = {
        "RANK": str(chosen.nproc_per_node * chosen.node_rank + local_rank),
        "LOCAL_RANK": str(local_rank),
        "GLOG_log_dir": str(folder),
    }
    python = [] if chosen.no_python else [sys.executable, "-u", *(["-m"] if chosen.module else [])]
    command = [*python, chosen.training_script, *chosen.training_script_args]
    outputs: dict[str, Any] = {}
    if chosen.redirect_stdout_and_stderr:
        folder.mkdir(parents=True, exist_ok=True)
        outputs = {name: files.enter_context((folder / name).open("w")) for name in ("stdout", "stderr")}
        print(f"the output of rank {own['RANK']} is written below {folder}", flush=True)
    return subprocess.Popen(command, env={**shared, **own}, **outputs)


def _wait(ranks: Sequence[Any]) -> None:
    while True:
        codes = [rank.poll() for rank in ranks]
        for rank, code in zip(ranks, codes, strict=True):
            if code not in (None, 0):
                raise subprocess.CalledProcessError(code, rank.args)
        if all(code == 0 for code in codes):
            return
        time.sleep(_LOOK)


def _end(ranks: Sequence[Any]) -> None:
    """Ask the running ranks to end, and kill those that do not."""
    for rank in ranks:
        if rank.poll() is None:
            rank.terminate()
    limit = time.monotonic() + _GRACE
    for rank in ranks:
        try:
            rank.wait(max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            rank.kill()
            rank.wait()


__getattr__ = saying(__name__)


if __name__ == "__main__":
    main()
