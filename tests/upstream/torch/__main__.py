"""``python -m tests.upstream.torch``: torch's own distributed tests, on the stand-in for ``torch.distributed``.

Prints the counts for 2 and for 4 ranks, and exits with 1 if an outcome differs from ``expected.toml``.
``--on torch`` runs the same tests on torch itself, over gloo, as the control.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from multiprocessing.util import get_temp_dir
from pathlib import Path

from tests.upstream.torch.expected import differences

ROOT = Path(__file__).parents[3]
SECONDS = 100
"""The limit in seconds of a test."""


def main() -> int:
    """Run the command line's request; return the exit code."""
    parser = argparse.ArgumentParser(prog="upstream-torch", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--on", choices=["collshim", "torch"], default="collshim")
    parser.add_argument("tests", nargs="*", help="names of tests, by default all")
    asked = parser.parse_args()
    if len(asked.ranks) > 1:
        return max([_in_a_process(asked, ranks) for ranks in asked.ranks])
    get_temp_dir()  # multiprocessing's folder, which it removes as the process ends, lies elsewhere
    with tempfile.TemporaryDirectory(prefix="upstream-") as folder:  # torch's tests leave their stores behind
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        outcomes = _run(asked.ranks[0], asked.on, asked.tests)
    counts = Counter(outcome.partition(":")[0] for outcome in outcomes.values())
    print(f"{asked.on}, {asked.ranks[0]} ranks: {len(outcomes)} tests, {dict(counts)}", flush=True)
    wrong = [] if asked.tests else differences(outcomes, asked.ranks[0], asked.on)
    print("\n".join(wrong))
    return int(bool(wrong)) if not asked.tests else int(counts["failed"] > 0)


def _in_a_process(asked: argparse.Namespace, ranks: int) -> int:
    """Run a separate process, because the number of ranks is fixed when torch's tests are imported."""
    options = ["--on", asked.on, "--ranks", str(ranks), "--", *asked.tests]
    command = [sys.executable, "-m", "tests.upstream.torch", *options]
    return subprocess.run(command, check=False).returncode


def _run(ranks: int, on: str, tests: list[str]) -> dict[str, str]:
    """Return each test's outcome: "passed", "skipped: ..." or "failed: ..."."""
    os.environ.update(
        BACKEND="gloo",
        WORLD_SIZE=str(ranks),
        INIT_METHOD="file:///each-test-has-its-own",
        COLLSHIM_UPSTREAM=on,
        DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(SECONDS),
        GLOO_SOCKET_IFNAME="lo",
        PYTHONPATH=os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
    )
    multiprocessing.set_forkserver_preload(["tests.upstream.torch.suite"])
    from tests.upstream.torch import suite

    return {name: _outcome(suite.UpstreamTests(name)) for name in tests or suite.names()}


def _outcome(test: unittest.TestCase) -> str:
    result, began = unittest.TestResult(), time.monotonic()
    test.run(result)
    if result.skipped:
        found = f"skipped: {result.skipped[0][1]}"
    elif result.failures or result.errors:
        found = f"failed: {[*result.failures, *result.errors][0][1]}"
    else:
        found = "passed"
    print(f"{test._testMethodName}: {found} ({time.monotonic() - began:.1f} s)", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
