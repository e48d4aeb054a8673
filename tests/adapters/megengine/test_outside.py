"""basecore 0.1.10 from PyPI, unmodified; its ``basecore.utils.dist`` uses MegEngine's distributed functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.packages import install, run_for_json

pytestmark = [pytest.mark.processes, pytest.mark.slow]

PINS = ("basecore==0.1.10", "megfile==2.0.5")

SCRIPT = """
import json
import sys

sys.path.append(sys.argv[1])  # behind this environment's own packages

import collshim

with collshim.stand_in("megengine"):
    import megengine as mge
    import megengine.distributed as dist
    from basecore.engine import solver
    from basecore.utils.dist import (
        all_reduce, gather_pyobj, get_local_pg, get_local_world_size, init_local_pg, is_rank0_process
    )

    @dist.launcher(n_gpus=2)
    def work():
        rank = dist.get_rank()
        init_local_pg([0, 1])
        x = mge.tensor([1.0 + rank])
        reduced = [all_reduce(x, mode).numpy().tolist() for mode in ("sum", "MEAN")]
        gathered = gather_pyobj({"rank": rank}, "key", target_rank_id=1)
        return [is_rank0_process(), get_local_world_size(), get_local_pg().rank, reduced, gathered]

    print(json.dumps(work()))
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package and its dependencies in a folder; skip the test if pip cannot get them."""
    return install(tmp_path_factory.mktemp("packages"), PINS, "--only-binary=:all:")


def test_basecore_reduces_and_gathers(packages: Path) -> None:
    reduced = [[3.0], [1.5]]
    assert run_for_json(SCRIPT, str(packages)) == [
        [True, 2, 0, reduced, None],
        [False, 2, 1, reduced, [{"rank": 0}, {"rank": 1}]],
    ]
