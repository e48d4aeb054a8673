"""``collshim run``: every framework's environment; exit codes passed on, the others ended; one machine and two."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from collshim.__main__ import main
from tests.robustness.namespaces import Machines, machines, reason_against
from tests.robustness.scripts import Ended, environment, run_command, scripts, start_command

SIZE = 4
REASON = reason_against()
SPEAKS = """
    import os, json, sys
    import numpy as np
    import collshim, collshim.oneflow as flow, collshim.tensorflow as tf
    from collshim.torch import distributed as dist
    from collshim.mindspore import communication
    from collshim.megengine import distributed
    dist.init_process_group()
    communication.init()
    world = collshim.current()
    distributed.init_process_group(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world.size, world.rank, 0)
    ranks = [dist.get_rank(), communication.get_rank(), flow.env.get_rank(), distributed.get_rank()]
    ranks.append(int(tf.distribute.MultiWorkerMirroredStrategy().run(
        lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)))
    total = world.communicator.all_reduce(np.array(world.rank)).wait()
    with open(f"{sys.argv[1]}/{world.rank}.json", "w") as told:
        json.dump({"ranks": ranks, "sizes": [dist.get_world_size(), communication.get_group_size()],
                   "local": [world.local_rank, world.local_size], "total": int(total),
                   "environment": dict(os.environ)}, told)
"""
FAILS = """
    import sys, time, collshim
    comm = collshim.current().communicator
    comm.barrier().wait()
    if comm.rank == 2:
        sys.exit(7)
    time.sleep(1000)
"""


COUNTS = """
    import sys, numpy as np, collshim
    world = collshim.current()
    total = int(world.communicator.all_reduce(np.array(1)).wait())
    with open(f"{sys.argv[1]}/{world.rank}", "w") as told:
        told.write(f"{world.rank} of {total}")
"""
WRITES = """
    import os
    reading, writing = os.pipe2(os.O_DIRECT)  # what is written at once is read at once
    own = os.dup(1)
    os.dup2(writing, 1)
    print("a line", "of", 4, "words")
    first = os.read(reading, 100)
    os.dup2(own, 1)
    print(first)
"""
LISTENS = """
    import json, os, sys, numpy as np, collshim

    def listening(pid):
        sockets = {}
        for family in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{family}") as table:
                for line in table.readlines()[1:]:
                    fields = line.split()
                    if fields[3] == "0A":
                        sockets[f"socket:[{fields[9]}]"] = fields[1].partition(":")[0]
        found = []
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            try:
                found.append(sockets.get(os.readlink(f"/proc/{pid}/fd/{descriptor}")))
            except FileNotFoundError:
                pass
        return [address for address in found if address]

    world = collshim.current()
    comm = world.communicator.subgroup([1, 0])
    sent = comm.send(np.ones(3), 1 - comm.rank)
    comm.recv(1 - comm.rank).wait()
    sent.wait()
    told = {"address": os.environ["MASTER_ADDR"], "secret": os.environ["COLLSHIM_SECRET"]}
    for name, pid in (("rank", os.getpid()), ("agent", os.getppid())):
        with open(f"/proc/{pid}/cmdline") as command:
            told[name] = {"command": command.read(), "listening": listening(pid)}
    with open(f"{sys.argv[1]}/{world.rank}.json", "w") as file:
        json.dump(told, file)
    comm.barrier().wait()
"""
LISTENING_PORT = 29513
_LOOPBACK_IN_PROC = f"{int.from_bytes(socket.inet_aton('127.0.0.1'), sys.byteorder):08X}"


def _script(folder: Path, source: str) -> list[str]:
    """Write a file of that source, and return it with the folder as its argument."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(source))
    return [str(script), str(folder)]


def _run(folder: Path, source: str, *options: str, **variables: str) -> Ended:
    return run_command(folder, "run", *options, *_script(folder, source), **variables)


def _temporary(folder: Path) -> str:
    """Make a separate folder for temporary files."""
    place = folder / "temporary"
    place.mkdir()
    return str(place)


def _left_behind(folder: Path) -> list[Path]:
    return list((folder / "temporary").iterdir())


def _ended(process: subprocess.Popen[str]) -> Ended:
    try:
        out, errors = process.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        process.terminate()  # the agent ends its ranks
        out, errors = process.communicate()
        return Ended(None, out, errors)
    return Ended(process.returncode, out, errors)


def _told(folder: Path) -> list[Any]:
    """Return what every rank wrote, by rank."""
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(SIZE)]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("run")
    seen = _run(folder, SPEAKS, "-n", str(SIZE), TMPDIR=_temporary(folder))
    assert seen.code == 0, seen
    assert _left_behind(folder) == []
    return _told(folder)


def test_every_framework_finds_its_environment(told: list[dict[str, Any]]) -> None:
    assert [line["ranks"] for line in told] == [[rank] * 5 for rank in range(SIZE)]
    assert [line["sizes"] for line in told] == [[SIZE, SIZE]] * SIZE
    assert [(line["local"], line["total"]) for line in told] == [([rank, SIZE], 6) for rank in range(SIZE)]


@pytest.mark.parametrize("rank", range(SIZE))
def test_variables_match_the_launcher_of_each_framework(rank: int, told: list[dict[str, Any]]) -> None:
    found = told[rank]["environment"]
    own = {name: str(rank) for name in ("RANK", "LOCAL_RANK", "RANK_ID", "DEVICE_ID", "MS_NODE_ID")}
    size = {name: str(SIZE) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK_SIZE", "MS_WORKER_NUM")}
    assert {name: found.get(name) for name in own | size} == own | size
    cluster = json.loads(found["TF_CONFIG"])
    assert (len(cluster["cluster"]["worker"]), cluster["task"]) == (SIZE, {"type": "worker", "index": rank})
    assert found["MS_SCHED_HOST"] == found["MASTER_ADDR"]


def test_failure_passes_on_its_exit_code(tmp_path: Path) -> None:
    seen = _run(tmp_path, FAILS, "-np", str(SIZE), TMPDIR=_temporary(tmp_path))
    assert seen.code == 7, seen
    assert re.search(r"^collshim run: rank 2 failed first \(pid \d+, exit code 7\)$", seen.errors, re.MULTILINE)
    told = seen.errors.partition("collshim run: ")[2].splitlines()[1:]
    assert all(OTHERS.fullmatch(line) for line in told), "it raised nothing that could be told"
    assert _left_behind(tmp_path) == []


def test_failure_of_a_single_process_names_no_rank(tmp_path: Path) -> None:
    seen = _run(tmp_path, "raise ValueError('what the script got wrong')")
    told = seen.errors.partition("collshim run: ")[2].splitlines()
    assert re.fullmatch(r"the script failed \(pid \d+, exit code 1\)", told[0])
    assert told[1:] == ["  ValueError: what the script got wrong"]


OTHERS = re.compile(r"  \d more (rank|ranks) (failed after it|was stopped|were stopped)")
"""The lines about ranks that failed because one had, and about those that were stopped before."""

ERRS = """
    import collshim, numpy as np
    comm = collshim.current().communicator
    print("rank", comm.rank, "is here")
    if comm.rank == 1:
        raise ValueError("what rank 1 got wrong")
    comm.all_reduce(np.ones(3)).wait()
"""


def test_output_is_prefixed_and_failure_shown_last(tmp_path: Path) -> None:
    seen = _run(tmp_path, ERRS, "--ranks", "3")
    assert seen.code == 1, seen
    assert sorted(seen.out.splitlines()) == [f"[rank {rank}] rank {rank} is here" for rank in range(3)]
    lines = seen.errors.splitlines()
    traces = [line for line in lines if line.endswith("Traceback (most recent call last):")]
    assert traces == ["[rank 1] Traceback (most recent call last):"], "a failure that is another's is one line"
    assert not [line for line in lines if "runpy" in line or "launching/worker.py" in line], seen.errors
    first = next(at for at, line in enumerate(lines) if line.startswith("collshim run: "))
    assert lines[first].startswith("collshim run: rank 1 failed first (pid ")
    assert lines[first + 1] == "  ValueError: what rank 1 got wrong"
    assert len(lines) > first + 2
    assert all(OTHERS.fullmatch(line) for line in lines[first + 2 :])


def test_name_that_all_ranks_lack_is_told_once(tmp_path: Path) -> None:
    seen = _run(tmp_path, "import mindspore\nmindspore.nn.Flaten", "-n", "3", "--as", "mindspore")
    told = [line for line in seen.errors.splitlines() if "no attribute 'Flaten'" in line]
    assert (seen.code, len(told)) == (1, 1), seen
    assert "absent.py" not in seen.errors


def test_missing_name_is_told_at_the_end_if_no_rank_has_printed_it(tmp_path: Path) -> None:
    source = """
        import collshim.launching.telling as telling
        telling.claim = lambda file, text: None  # as if the rank that claimed it had been ended before it printed
        import mindspore
        mindspore.nn.Flaten
    """
    seen = _run(tmp_path, source, "-n", "2", "--as", "mindspore")
    assert next(line for line in seen.errors.splitlines() if "no attribute 'Flaten'" in line).startswith("  Missing")


def test_torchrun_command_line_runs_unchanged(tmp_path: Path) -> None:
    source = (
        "import os; print(os.environ['TORCHELASTIC_MAX_RESTARTS'], os.environ['RANK'], os.environ['TF_CONFIG'][:9])"
    )
    torchruns = ("--standalone", "--nnodes=1:1", "--nproc_per_node=2", "--max_restarts=3", "--rdzv_id", "7")
    seen = _run(tmp_path, source, *torchruns, "--local_ranks_filter=1", "--tee=3")
    assert (seen.code, seen.errors) == (0, ""), seen
    assert [line.partition(":")[2] for line in seen.out.splitlines()] == ['3 1 {"cluster']


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are GPUs to start ranks for")
def test_nproc_gpu_without_gpus_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-n", "gpu", __file__]) == 2
    error = capsys.readouterr().err
    assert error.startswith("collshim run: -n is gpu: ")
    assert len(error.splitlines()) == 1


def test_printed_line_is_written_at_once(tmp_path: Path) -> None:
    seen = _run(tmp_path, WRITES, "--no-prefix")
    assert (seen.code, seen.out) == (0, repr(b"a line of 4 words\n") + "\n"), seen


def test_signal_is_named_with_its_shell_exit_code(tmp_path: Path) -> None:
    seen = _run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "--log-dir", str(tmp_path))
    assert seen.code == 128 + signal.SIGKILL
    assert "signal 9 (SIGKILL))" in seen.errors
    assert f"the ranks' output: {tmp_path}" in seen.errors


def test_ctrl_c_ends_ranks_and_shows_locations(tmp_path: Path) -> None:
    source = """
import collshim, time
collshim.current().communicator.barrier().wait()
print("here", flush=True)
time.sleep(1000)
"""
    with scripts([start_command(tmp_path, "run", "-n", "2", *_script(tmp_path, source))]) as started:
        for _ in range(2):
            assert started[0].stdout.readline().endswith("here\n")
        started[0].send_signal(signal.SIGINT)
        seen = started[0].ended()
    assert (seen.code, seen.out) == (128 + signal.SIGINT, "")
    lines = sorted(seen.errors.splitlines())
    assert len(lines) == 2
    for rank, line in enumerate(lines):
        assert re.fullmatch(
            rf"\[rank {rank}\] interrupted at .*\.py:5; its last call was barrier\(\) at .*\.py:3", line
        )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.py"], "collshim run: there is no script nowhere.py in "),
        (["-m", "no.such.module"], "collshim run: there is no module no.such.module in "),
        (["--patch", "megengine", __file__], "collshim run: patch: megengine is not installed here (No module named"),
        (["--patch", "jax", __file__], "collshim run: patch: the framework is 'jax', should be one of 'megengine'"),
        (
            ["--as", "onflow", __file__],
            "collshim run: stand_in: the framework is 'onflow', should be one of torch, one",
        ),
        (["--no-python", __file__], "collshim run: --no-python works only with torchrun"),
        (["--run_path", __file__], "collshim run: --run-path works only with torchrun"),
    ],
)
def test_invalid_command_is_refused_before_starting(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "-n", "2", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(told)
    assert len(error.splitlines()) == 1


def test_missing_script_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run"])
    assert capsys.readouterr().err.endswith("the following arguments are required: SCRIPT\n")


def test_ranks_ignore_an_enclosing_slurm_task(tmp_path: Path) -> None:
    slurm = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_NNODES": "1"}
    seen = _run(tmp_path, COUNTS, "-n", "2", **slurm)
    assert seen.code == 0, seen
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["0 of 2", "1 of 2"]


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="the system has no table of sockets in /proc")
@pytest.mark.parametrize("port", [0, LISTENING_PORT], ids=["a free port", "a given port"])
def test_local_world_uses_loopback_and_hides_its_secret(port: int, tmp_path: Path) -> None:
    seen = _run(tmp_path, LISTENS, "-n", "2", "--master-port", str(port), COLLSHIM_SECRET="")
    assert seen.code == 0, seen
    told = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    processes = [line[name] for line in told for name in ("rank", "agent")]
    assert {address for process in processes for address in process["listening"]} == {_LOOPBACK_IN_PROC}
    assert all(process["listening"] for process in processes)
    assert [line["address"] for line in told] == ["127.0.0.1"] * 2
    secret = told[0]["secret"]
    assert (len(secret), told[1]["secret"]) == (64, secret)
    assert not any(secret in text for text in (seen.out, seen.errors, *(each["command"] for each in processes)))


def test_occupied_port_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        seen = _run(tmp_path, COUNTS, "-n", "2", "--master-port", str(port))
    assert seen.code == 1, seen
    assert f"cannot serve the world's store at 127.0.0.1:{port}" in seen.errors
    assert "Traceback" not in seen.errors


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_invalid_number_of_ranks_is_a_usage_error(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["run", "-n", number, "script.py"])
    told = capsys.readouterr().err
    assert told.endswith(f"/--nproc-per-node: is '{number}', should be a number of at least 1\n"), told


@pytest.mark.skipif(bool(REASON), reason=REASON)
def test_ranks_on_two_machines_share_a_world(tmp_path: Path) -> None:
    with machines(2) as net:
        started = [_run_on(net, place, tmp_path) for place in range(2)]
        found = [_ended(process) for process in started]
    assert [seen.code for seen in found] == [0, 0], found
    assert _told(tmp_path) == [[SIZE, rank % 2, 2, 6] for rank in range(SIZE)]


PLACES = """
    import json, sys, numpy as np, collshim
    world = collshim.current()
    total = int(world.communicator.all_reduce(np.array(world.rank)).wait())
    with open(f"{sys.argv[1]}/{world.rank}.json", "w") as told:
        json.dump([world.size, world.local_rank, world.local_size, total], told)
"""


def _run_on(net: Machines, place: int, folder: Path) -> subprocess.Popen[str]:
    where = ["--node-rank", str(place), "--master-addr", net.address(0), "--master-port", "29512"]
    words = ["-m", "collshim", "run", "-n", "2", "--nnodes", "2", *where, *_script(folder, PLACES)]
    return subprocess.Popen(
        [*net.prefix(place), sys.executable, *words],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
