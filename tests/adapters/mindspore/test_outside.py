"""mindone 0.5.0 from PyPI, unmodified: the communication of its ZeRO, ``mindone.models.modules.parallel``.

Its packages import transformers and MindSpore's layers, which the stand-in lacks, so the module is imported without
them; ``tests/over_real/over_mindspore.py`` runs its trainers over the real MindSpore.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.packages import install, run_for_json

pytestmark = [pytest.mark.processes, pytest.mark.slow]

PIN = "mindone==0.5.0"

SCRIPT = """
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

import collshim

for name in ("mindone", "mindone.models", "mindone.models.modules", "mindone.models.modules.parallel"):
    package = ModuleType(name)
    package.__path__ = [str(Path(sys.argv[1], *name.split(".")))]
    sys.modules[name] = package

with collshim.stand_in("mindspore"):
    import mindspore as ms
    from mindspore import Parameter, Tensor
    from mindspore.communication import get_rank, init
    from mindone.models.modules.parallel.param_wrapper import ZeroParamWrapper

    def work():
        init()
        ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL)
        rank = get_rank()
        whole = np.arange(8, dtype=np.float32).reshape(4, 2)
        gathers = ZeroParamWrapper(Parameter(Tensor(whole)), 3, "hccl_world_group")
        own = Tensor(whole[2 * rank : 2 * rank + 2])
        odd = ZeroParamWrapper(Parameter(Tensor(whole[:3])), 3, "hccl_world_group")
        scaled = [ms.grad(lambda x, wrapper=wrapper: (wrapper(x) * (rank + 1)).sum()) for wrapper in (gathers, odd)]
        found = [gathers(own), scaled[0](own), odd(Tensor(whole[:3])), scaled[1](Tensor(whole[:3]))]
        return [[gathers.need_rewrite, odd.need_rewrite], *(one.asnumpy().tolist() for one in found)]

    print(json.dumps(collshim.launch(work, 2)))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package alone in a folder; skip the test if pip cannot get it."""
    return install(tmp_path_factory.mktemp("package"), [PIN], "--no-deps")


def test_mindone_gathers_parameters_and_scatters_their_gradients(package: Path) -> None:
    whole = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    mean = [1.5, 1.5]
    assert run_for_json(SCRIPT, str(package)) == [[[True, False], whole, [mean] * 2, whole[:3], [mean] * 3]] * 2
