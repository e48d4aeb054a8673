"""Run as a rank that ``collshim run`` started: set each framework's own launcher variables, then run the script.

torch's elastic agent sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which OneFlow
reads too; the other variables are derived from them here.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import runpy
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from collshim.calls.frames import traceback_of
from collshim.calls.site import where_interrupted
from collshim.environment import forget_others, record
from collshim.errors import MissingNameError, PeerError, described
from collshim.launching import telling
from collshim.launching.placement import take_gpu
from collshim.patching import patch

_SIGNALLED = 128
"""The exit code is this plus the signal's number, as in shells."""


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that MindSpore's and TensorFlow's launchers would have set for the rank in ``given``.

    Also return a record of them, because the script can change them for ranks that it starts itself.
    """
    rank, size = given["RANK"], int(given["WORLD_SIZE"])
    host, port = given["MASTER_ADDR"], int(given["MASTER_PORT"])
    workers = [f"{host}:{port + index}" for index in range(size)]
    derived = {
        "RANK_ID": rank,
        "RANK_SIZE": str(size),
        "DEVICE_ID": given["LOCAL_RANK"],
        "MS_ROLE": "MS_WORKER",
        "MS_NODE_ID": rank,
        "MS_WORKER_NUM": str(size),
        "MS_SCHED_HOST": host,
        "MS_SCHED_PORT": str(port),
        "TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": int(rank)}}),
    }
    return derived | record({**given, **derived})


def main() -> None:
    """Run ``sys.argv[1]``, a script, or the module after ``-m``, as ``__main__`` with the remaining arguments."""
    _write_whole_lines()
    forget_others(os.environ)  # variables of the launcher that started the agent, such as Slurm's
    os.environ.update(environment(os.environ))
    take_gpu(int(os.environ["LOCAL_RANK"]))
    for framework in filter(None, os.environ.get(patch.VARIABLE, "").split(",")):
        patch.patch(framework)
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    handler = get_error_handler()  # its file tells the agent which rank failed first, and why
    handler.initialize()
    atexit.register(_free_groups)  # the function that is registered first runs last, after any end of the script
    gc.freeze()  # imported objects live as long as the process, so no collection needs to visit them
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see start.py
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _run()
    except KeyboardInterrupt as interrupt:
        _print_whereabouts(interrupt)
        sys.exit(_SIGNALLED + signal.SIGINT)
    except Exception as error:
        handler.record_exception(_with_text(error))
        sys.last_value = error  # as the interpreter would set it; at exit it is reported to the other ranks
        _tell(error)
        sys.exit(1)


def _free_groups() -> None:
    """Free the process groups that only unreachable models refer to, while threads can still run Python.

    A thread of gloo's that frees a tensor after the interpreter has begun to end aborts the process, without a Python
    frame: on a busy machine 1 of 30 ranks of DistributedDataParallel (torch 2.13). Freeing the group joins the thread.
    """
    sys.last_value = None  # an error, whose frames refer to the program's objects
    gc.collect()


def _write_whole_lines() -> None:
    """Buffer by line, because an unbuffered ``print(a, b)`` writes twice, and another rank can write in between."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def _run() -> None:
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")


def _print_whereabouts(interrupt: KeyboardInterrupt) -> None:
    """Print to standard error where this rank was, if it had joined a world: others might wait for it."""
    from collshim.world import peek

    world = peek()
    if world is not None:
        sys.stderr.write(f"{where_interrupted(interrupt, world.last_call())}\n")


def _with_text(error: Exception) -> Exception:
    """Return an exception whose text torch can write to its error file: ``str`` of a user's class can fail."""
    try:
        str(error)
    except Exception:
        return RuntimeError(described(error)).with_traceback(error.__traceback__)
    return error


def _tell(error: Exception) -> None:
    """Print an error; print one about a missing name only if no rank of this machine has printed the same one."""
    text = _report(error)
    file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if file is None or not isinstance(error, MissingNameError):
        sys.stderr.write(text)
        return
    if note := telling.claim(file, text):
        sys.stderr.write(text)
        telling.tell(note)


def _report(error: Exception) -> str:
    """Return the script's traceback without the frames that started it, or one line for another rank's failure."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename in _STARTERS:
        trace = trace.tb_next
    if isinstance(error, PeerError):
        kind = type(error)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        return f"{name}: {error}\n"
    return traceback_of(error.with_traceback(trace))


_STARTERS = {__file__, str(Path(__file__).with_name("start.py")), runpy.__file__, "<frozen runpy>"}
