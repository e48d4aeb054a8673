"""`collshim invariance`: its output, its exit codes, its JSON, and scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.invariance import steps
from tests.invariance.conftest import HERE

pytestmark = pytest.mark.processes

STEPS = Path(steps.__file__)
SCRIPT = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
world = dist.get_world_size()
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
loader = DataLoader(data, batch_size=8 // world, sampler=DistributedSampler(data, shuffle=False))
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters())
for inputs, targets in loader:
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    (loss * FACTOR).backward()
    optimizer.step()
dist.destroy_process_group()
"""


def run(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "collshim", "invariance", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (HERE.parents[1], *sys.path)))}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=200, cwd=folder or HERE, env=environment
    )


def test_output_begins_with_the_verdict() -> None:
    done = run("programs/fault_sum_for_mean.py:step", "--ranks", "2")
    assert done.returncode == 1, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first == (
        "programs/fault_sum_for_mean.py:step differs: on 2 ranks all 22 gradients are W times those of one rank."
    )
    assert "Culprit: programs/fault_sum_for_mean.py:28  all_reduce(sum)  (P→R)" in lines
    assert "    dist.all_reduce(parameter.grad)  # fault" in lines
    assert "ran programs/fault_sum_for_mean.py:step on 2 ranks (processes)" in done.stderr


def test_json_has_the_same_facts() -> None:
    done = run("steps.py:right", "--json")
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["code"], facts["culprits"]) == (0, 0, [])
    assert [one["ranks"] for one in facts["runs"]] == [2, 4]
    assert {one["kind"] for one in facts["runs"][0]["parameters"]} == {"1"}


def test_what_ranks_write_outside_python_goes_to_standard_error(tmp_path: Path) -> None:
    script = "import os\nos.write(1, b'native')" + SCRIPT.replace("FACTOR", "1")
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    done = run("train.py", "--ranks", "2", "--json", folder=tmp_path)
    assert json.loads(done.stdout)["code"] == 0
    assert "native" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["steps.py:missing"], "has no function 'missing'"),
        (["nowhere.py:step"], "there is no file nowhere.py"),
        (["steps"], "is not module:function"),
        (["steps.py:right", "--batch", "missing"], "has no 'missing'"),
        (["steps.py:right", "--mesh", "dp"], "should be names with numbers"),
        (["steps.py:right", "--ranks", "0"], "should be numbers from 1"),
    ],
)
def test_wrong_words_are_refused(words: list[str], text: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert text in done.stderr


@pytest.mark.parametrize(("factor", "code"), [("1", 0), ("world", 1)])
def test_script_is_run_until_its_first_step(tmp_path: Path, factor: str, code: int) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("FACTOR", factor), encoding="utf-8")
    done = run("train.py", "--ranks", "2", folder=tmp_path)
    assert done.returncode == code, done.stderr
    assert ("all 2 gradients are W times" in done.stdout) is bool(code)
    assert "gradients are those of the optimizer's first step" in done.stdout


def test_port_with_a_wrong_factor_parts_from_its_original() -> None:
    done = run("port_torch_wrong.py:step", "--against", "port_mindspore_original.py:step", folder=HERE / "frameworks")
    assert done.returncode == 1, done.stderr
    assert "the losses first differ at step 2, 3 of 3 gradients differ." in " ".join(done.stdout.split())
    assert "port: port_torch_wrong.py:48  dist.all_reduce(parameter.grad)  # fault" in done.stdout
    assert "original: port_mindspore_original.py:50  gradients = reducer(gradients)" in done.stdout


def test_right_port_agrees_with_its_original() -> None:
    words = ["port_torch_right.py:step", "--against", "port_mindspore_original.py:step", "--json"]
    done = run(*words, folder=HERE / "frameworks")
    facts = json.loads(done.stdout)
    assert (done.returncode, [one["same"] for one in facts["runs"]]) == (0, [True, True])


SPAWNING = """
import os
import subprocess
import sys
import time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
with open(f"child.{os.getpid()}", "w") as file:
    file.write(str(child.pid))
model = torch.nn.Linear(4, 1)
model(torch.ones(8 // dist.get_world_size(), 4)).mean().backward()
if dist.get_rank() == 1:
    time.sleep(300)
for parameter in model.parameters():
    dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
torch.optim.SGD(model.parameters(), 0.1).step()
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="children are found in /proc")
def test_late_script_says_where_each_rank_stood_and_leaves_no_processes(tmp_path: Path) -> None:
    (tmp_path / "spawning.py").write_text(SPAWNING)
    done = run("spawning.py", "--ranks", "2", "--timeout", "10", folder=tmp_path)
    text = " ".join(done.stdout.split())
    assert "rank 0 has not returned: it was interrupted at spawning.py:18; its last call was all_reduce(" in text
    assert "rank 1 has not returned: it was interrupted at spawning.py:16" in text
    children = [int(path.read_text()) for path in tmp_path.glob("child.*")]
    assert len(children) == 4  # one rank twice, and two ranks
    assert not [pid for pid in children if runs(pid)]


def runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended is perhaps still listed."""
    path = Path(f"/proc/{pid}/stat")
    return path.exists() and path.read_text().rpartition(")")[2].split()[0] != "Z"
