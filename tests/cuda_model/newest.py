"""Run the tests that concern torch on its newest release: over the simulated CUDA, and on the CPU with GPUs hidden.

The former run twice, with each of torch's engines for NCCL.

python -m tests.cuda_model.newest       with MODEL_TORCH another release than 2.15.0

The exit status is that of the first tests that fail, or 77 if the environment cannot be made, with the reason.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.environments import ROOT, SKIPPED, CannotBeMadeError

NEWEST = "2.15.0"

ON_CPU = (
    "tests/adapters/torch",
    "tests/adapters/test_signatures.py",
    "tests/docs/test_torch_group.py",
    "tests/engine",
)
"""The tests that run without GPUs, besides those of the model."""

os.environ.setdefault("MODEL_TORCH", NEWEST)  # before the import, which reads it


def main() -> int:
    """Make the environment if needed, and run all three."""
    from tests.cuda_model.__main__ import surroundings
    from tests.cuda_model.environment import install_collshim, make, python

    try:
        make()
        install_collshim()
    except CannotBeMadeError as error:
        print(f"torch-newest: SKIPPED, no test was run: {error}", flush=True)
        return SKIPPED
    on_model = [sys.executable, "-m", "tests.cuda_model", *sys.argv[1:]]
    hidden = {**surroundings(), "CUDA_VISIBLE_DEVICES": ""}
    on_cpu = [str(python()), "-m", "pytest", "--quiet", "--numprocesses=2", "--session-timeout=1500", *ON_CPU]
    statuses = [
        *(
            subprocess.run(on_model, cwd=ROOT, env={**os.environ, "COLLSHIM_NCCL": engine}, check=False).returncode
            for engine in ("legacy", "nccl2")
        ),
        subprocess.run(on_cpu, cwd=ROOT, env=hidden, check=False).returncode,
    ]
    return next(filter(None, statuses), 0)


if __name__ == "__main__":
    sys.exit(main())
