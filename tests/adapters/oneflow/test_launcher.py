"""python -m collshim.oneflow.distributed.launch: OneFlow's options, each rank's environment, and how it ends."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from collshim.oneflow.distributed import launch

pytestmark = pytest.mark.processes

TELLS = """
    import json, os, sys
    import collshim.oneflow as flow
    total = flow.ones(1)
    flow.comm.all_reduce(total)
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "OMP_NUM_THREADS", "GLOG_log_dir")
    told = {name: os.environ[name] for name in names}
    with open(f"{sys.argv[1]}/{os.environ['RANK']}.json", "w") as file:
        json.dump([told, total.item(), sys.argv[2:]], file)
    print("printed by", os.environ["RANK"])
"""


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def launched(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    own["PYTHONPATH"] = str(Path(__file__).parents[3])
    command = [sys.executable, "-m", "collshim.oneflow.distributed.launch", "--master_port", free_port(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=folder, env={**own, **environment})


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def written(text: str) -> str:
        (tmp_path / "script.py").write_text(textwrap.dedent(text))
        return str(tmp_path / "script.py")

    return written


def test_each_rank_gets_its_place_and_joins_the_world(tmp_path: Path, script: Any) -> None:
    path = script(TELLS)
    done = launched(tmp_path, "--nproc_per_node", "2", path, str(tmp_path), "--lr", "0.1")
    assert done.returncode == 0, done.stderr
    assert "OMP_NUM_THREADS is 1 in each rank" in done.stdout
    for rank in range(2):
        told, total, arguments = json.loads((tmp_path / f"{rank}.json").read_text())
        assert total == 2.0
        assert arguments == ["--lr", "0.1"]
        assert told == {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "OMP_NUM_THREADS": "1",
            "GLOG_log_dir": str(tmp_path / "log" / f"local_rank_{rank}"),
        }


@pytest.mark.slow
def test_outer_launcher_is_ignored(tmp_path: Path, script: Any) -> None:
    around = {"RANK": "0", "WORLD_SIZE": "1", "RANK_ID": "0", "MS_NODE_ID": "0", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    done = launched(tmp_path, "--nproc_per_node", "2", script(TELLS), str(tmp_path), **around)
    assert done.returncode == 0, done.stderr
    assert [json.loads((tmp_path / f"{rank}.json").read_text())[1] for rank in range(2)] == [2.0, 2.0]


def test_rank_output_can_be_written_to_files(tmp_path: Path, script: Any) -> None:
    path = script("import sys; print('out'); print('err', file=sys.stderr)")
    done = launched(tmp_path, "--redirect_stdout_and_stderr", "--logdir", "logs", path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "logs" / "local_rank_0"
    assert ((folder / "stdout").read_text(), (folder / "stderr").read_text()) == ("out\n", "err\n")


def test_failing_rank_ends_the_others(tmp_path: Path, script: Any) -> None:
    path = script("import os, sys, time; sys.exit(7) if os.environ['RANK'] == '1' else time.sleep(1000)")
    done = launched(tmp_path, "--nproc_per_node", "2", path)
    assert done.returncode == 1
    assert "subprocess.CalledProcessError: Command" in done.stderr
    assert "returned non-zero exit status 7." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["--master_port", "70000", "x.py"],
            "'127.0.0.1:70000' must be an integer between 0 and 65536",
        ),
        (["--no_python", "-m", "x"], "--no_python and --module exclude each other"),
        (["--redirect_stdout_and_stderr", "--logdir", __file__, "x.py"], "must be a path to a directory"),
    ],
)
def test_invalid_launch_is_a_value_error(arguments: list[str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        launch.main(arguments)
