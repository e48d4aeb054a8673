"""Scripts that ``collshim run`` starts and that start ranks of their own, as with ``torch.multiprocessing.spawn``."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.robustness.scripts import run_command

pytestmark = pytest.mark.processes

SPAWNS = """
    import os, sys, torch
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def run(rank, port, by_url):
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port)
        url = f"tcp://localhost:{port}" if by_url else None
        dist.init_process_group("gloo", init_method=url, rank=rank, world_size=2)
        dist.all_reduce(total := torch.tensor(rank + 1))
        os.write(1, f"{dist.__name__} {total.item()}\\n".encode())  # print writes twice

    if __name__ == "__main__":
        port = sys.argv[1] if len(sys.argv) > 1 else os.environ["MASTER_PORT"]
        mp.spawn(run, args=(port, len(sys.argv) > 2), nprocs=2)
"""


WAYS: dict[str, list[object]] = {
    "the launcher's address": [],
    "an address of its own": [free_port()],
    "a URL of its own": [free_port(), "url"],
}


@pytest.mark.parametrize("way", WAYS)
def test_script_starts_ranks_of_its_own(way: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(SPAWNS))
    seen = run_command(tmp_path, "run", "--as", "torch", "--no-prefix", "script.py", *WAYS[way])
    assert seen.code == 0, seen
    assert sorted(seen.out.splitlines()) == ["collshim.torch.distributed 3"] * 2


STARTS = """
    import subprocess, sys

    words = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", sys.argv[1], "rank.py"]
    sys.exit(subprocess.run([sys.executable, *words]).returncode)
"""

RANK = """
    import os, torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    dist.all_reduce(total := torch.tensor(dist.get_rank() + 1))
    os.write(1, f"{dist.__name__} {total.item()}\\n".encode())
"""


def test_script_starts_torchs_launcher(tmp_path: Path) -> None:
    # torchrun's agent has a store of its own, which its ranks use, and not that of `collshim run`
    (tmp_path / "script.py").write_text(textwrap.dedent(STARTS))
    (tmp_path / "rank.py").write_text(textwrap.dedent(RANK))
    seen = run_command(tmp_path, "run", "--as", "torch", "--no-prefix", "script.py", free_port())
    assert seen.code == 0, seen
    assert sorted(seen.out.splitlines()) == ["collshim.torch.distributed 3"] * 2


WORKERS = """
    import json, os, subprocess, sys

    cluster = {"worker": [f"localhost:{port}" for port in sys.argv[1:]]}
    configs = [{"cluster": cluster, "task": {"type": "worker", "index": index}} for index in range(2)]
    started = [
        subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "TF_CONFIG": json.dumps(config)})
        for config in configs
    ]
    sys.exit(max(worker.wait() for worker in started))
"""

WORKER = """
    import os
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    total = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0)))
    os.write(1, f"{tf.__name__} {float(total)}\\n".encode())
"""


def test_script_starts_tensorflows_workers(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(WORKERS))
    (tmp_path / "rank.py").write_text(textwrap.dedent(WORKER))
    seen = run_command(tmp_path, "run", "--as", "tensorflow", "--no-prefix", "script.py", free_port(), free_port())
    assert seen.code == 0, seen
    assert sorted(seen.out.splitlines()) == ["collshim.tensorflow 2.0"] * 2
