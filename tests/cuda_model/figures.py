"""The host's cost of calls over NCCL on the simulated CUDA: real torch beside collshim, over the same real C++.

LD_LIBRARY_PATH=.venv-gpu-model/model .venv-gpu-model/bin/python -m tests.cuda_model.figures

The search for races is off, and the device does nothing while the host posts: both take time that no GPU takes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from tests.cuda_model import kernels, model
from tests.gpu.figures import NUMBERS, host_times

SIZES = ("4 B", "4 KB")
"""Beyond these the kernels' stand-ins take the time."""


def _held() -> AbstractContextManager[None]:
    return model.setting("held", 1)


if __name__ == "__main__":
    model.set_always("devices", 1)
    model.set_always("accesses", 0)
    kernels.install()
    print("\n".join(host_times({size: NUMBERS[size] for size in SIZES}, _held)))
    model.stop()
