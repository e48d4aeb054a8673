"""Run the tests over the real MegEngine, MindSpore, OneFlow and TensorFlow, each in a separate environment.

python -m tests.over_real [megengine] [mindspore] [oneflow] [tensorflow] makes ``.venv-over-megengine`` and so on, with
Python 3.10 (``python3.10``, or the one that PYTHON310 names), the framework, its dependencies, and torch. The exit
status is pytest's, or 77 if an environment cannot be made, with the reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import environments
from tests.environments import ROOT, SKIPPED, CannotBeMadeError

TESTS = ("setuptools<75", "torch>=2.6", "ml_dtypes", "hypothesis", "tomli", "pytest", "pytest-timeout")
MINDONE_NEEDS = ("transformers==4.57.1", "trampoline", "omegaconf", "sentencepiece")
ALONE = {"mindspore": ("mindone==0.5.0", "mindcv==0.3.0")}
"""Packages whose dependencies are left out, because no test imports them."""
PINS = {
    "megengine": ("megengine==1.13.0", "numpy==1.23.5"),
    "mindspore": ("mindspore==2.10.0", "numpy==1.26.4", *MINDONE_NEEDS),
    "oneflow": ("oneflow==0.9.0", "numpy==1.23.5", "nvidia-cudnn-cu11==8.6.0.163", "nvidia-cublas-cu11==11.11.3.6"),
    "tensorflow": ("tensorflow-cpu==2.21.0",),
}
"""PyPI's OneFlow is built with CUDA 11, whose libraries it looks for on a machine without a GPU too."""


def make(framework: str) -> Path:
    """Return the environment's Python; make it if missing."""
    alone = ALONE.get(framework, ())
    installs = [(*TESTS, *PINS[framework]), *([("--no-deps", *alone)] if alone else [])]
    return environments.make(f"over-{framework}", "3.10", *installs)


def run(framework: str, arguments: list[str]) -> int:
    """Make the environment if missing, and run the tests over one framework."""
    try:
        python = make(framework)
    except CannotBeMadeError as error:
        print(f"over-real: SKIPPED, no test over {framework} was run: {error}", flush=True)
        return SKIPPED
    options = ["--quiet", "--noconftest", "-c", os.devnull, f"--rootdir={ROOT}", "--timeout=100"]
    tests = map(str, sorted(Path(__file__).parent.glob(f"over_{framework}*.py")))
    command = [str(python), "-m", "pytest", *options, "-p", "no:cacheprovider", *tests, *arguments]
    cuda = python.parents[1].glob("lib/python*/site-packages/nvidia/*/lib")
    libraries = [*map(str, cuda), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = os.pathsep.join((str(python.parent), os.environ.get("PATH", "")))  # for msrun's python
    if framework == "oneflow":
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, libraries))
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(arguments: list[str]) -> int:
    """Run the named frameworks, else all; pass the rest to pytest. The first failure counts, then a skip."""
    named = [framework for framework in PINS if framework in arguments] or list(PINS)
    statuses = [run(framework, [word for word in arguments if word not in PINS]) for framework in named]
    return next((status for status in sorted(statuses) if status not in (0, SKIPPED)), max(statuses))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
