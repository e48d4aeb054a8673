"""Run the tests for GPUs without a GPU: torch with CUDA on a simulated CUDA runtime and a simulated NCCL.

python -m tests.cuda_model              all of them, side by side
python -m tests.cuda_model -- -k ring   arguments after the two dashes are pytest's

The exit status is pytest's, or 77 if the environment cannot be made, with the reason. See README.md beside this.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests.cuda_model.environment import LIBRARIES, TORCH, make, python
from tests.environments import ROOT, SKIPPED, CannotBeMadeError

TESTS = ("tests/gpu", "tests/cuda_model")


def main() -> int:
    """Make the environment if needed, and run the tests."""
    own, theirs = _split_arguments(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="2", help="tests that run side by side")
    parser.add_argument("--session-timeout", default="680", help="limit of the whole session in seconds")
    chosen = parser.parse_args(own)
    try:
        make()
    except CannotBeMadeError as error:
        print(f"gpu-model: SKIPPED, no test was run: {error}", flush=True)
        return SKIPPED
    options = ["-p", "tests.cuda_model.plugin", "--numprocesses", chosen.workers, "--quiet"]
    options += ["--session-timeout", chosen.session_timeout, "--ignore=tests/gpu/test_cupy.py"]
    command = [str(python()), "-m", "pytest", *options, *(theirs or []), *TESTS]
    return subprocess.run(command, cwd=ROOT, env=surroundings(), check=False).returncode


def _split_arguments(given: list[str]) -> tuple[list[str], list[str]]:
    """Split our arguments from pytest's."""
    place = given.index("--") if "--" in given else len(given)
    return given[:place], given[place + 1 :]


def surroundings() -> dict[str, str]:
    """Return the environment of the tests: they find the model, and torch does not log its watchdog."""
    own = {"LD_LIBRARY_PATH": str(LIBRARIES), "TORCH_CPP_LOG_LEVEL": "FATAL", "RES_OPTIONS": "timeout:1"}
    if TORCH.startswith("2.11."):  # several ranks of a process write to its flight recorder without a lock
        own |= {"TORCH_FR_BUFFER_SIZE": "0", "TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}
    return {**own, **{name: value for name, value in os.environ.items() if name not in own}}


if __name__ == "__main__":
    sys.exit(main())
