"""Which of several ranks' failures ``launch`` names."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import collshim

pytestmark = pytest.mark.threads


def test_rank_whose_failure_ended_the_group_is_named() -> None:
    has_failed = threading.Event()

    def program() -> None:
        comm = collshim.current().communicator
        if comm.rank == 0:
            try:
                comm.barrier().wait()
            finally:
                has_failed.set()
                time.sleep(0.1)  # the other rank fails meanwhile
        if comm.rank == 2:
            assert has_failed.wait(20)
            comm.barrier().wait()

    with pytest.raises(collshim.RankError, match="rank 1 has returned from its function") as caught:
        collshim.launch(program, 3)
    assert caught.value.rank == 0


UNGUARDED = """
import collshim
def rank():
    return collshim.current().rank
print(collshim.launch(rank, 2, ranks="processes"))
"""


def test_unguarded_launch_in_a_script_is_explained(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 1
    expected = 'launch: the ranks import this script, so its call must be under if __name__ == "__main__":'
    assert done.stderr.splitlines()[-1] == f"collshim.errors.RankError: {expected}"
    assert done.stderr.count("Traceback") == 1
