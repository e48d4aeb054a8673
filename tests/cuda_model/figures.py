"""What calls cost the host over NCCL, on the simulated CUDA: real torch beside collshim, over the same real C++.

LD_LIBRARY_PATH=.venv-gpu-model/model .venv-gpu-model/bin/python -m tests.cuda_model.figures
"""

from __future__ import annotations

from tests.cuda_model import kernels, model
from tests.gpu.figures import NUMBERS, host_times

SIZES = ("4 B", "4 KB")
"""Beyond these it is the stand-ins of the kernels that take the time."""

if __name__ == "__main__":
    model.set_always("devices", 1)
    kernels.install()
    print("\n".join(host_times({size: NUMBERS[size] for size in SIZES})))
    model.stop()
