"""The suite as a pytest plugin: a user's own module in place of an adapter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import collshim_pytest

pytestmark = pytest.mark.processes

ROOT = Path(collshim_pytest.__file__).resolve().parent
EXAMPLE = ROOT / "docs" / "examples" / "store_dist.py"
HEAVY = ("collshim", "torch", "numpy", "hypothesis")
ORDER = ("for rank in within.ranks]", "for rank in within.ranks[::-1]]")
"""The module's line for the order of gathered parts, and a mistaken one."""

OPTIONS = ("--collshim-adapter", "mypkg.dist", "--collshim-framework", "torch")

OWN_OPTION = "def pytest_addoption(parser):\n    parser.addoption('--adapter')\n"
OWN_TEST = "def test_own(pytestconfig):\n    assert pytestconfig.option.adapter == 'own'\n"
IMPORTS_NOTHING = f"import collshim_pytest, sys; print(sorted(set({HEAVY}) & set(sys.modules)))"
IMPORTS_WITHOUT = """
import importlib, pkgutil, sys
for name in ("pytest", "_pytest", "hypothesis"):
    sys.modules[name] = None  # how Python marks what is not there
import collshim.conformance as suite
made_of_tests = ("test_", "conftest", "plugin", "strategies", "patience", "mutants", "faults.programs")
names = [one.name for one in pkgutil.walk_packages(suite.__path__, "collshim.conformance.")]
asked = [name for name in names if not name.split(".", 2)[2].startswith(made_of_tests) and "__main__" not in name]
for name in asked:
    importlib.import_module(name)
print(len(asked) > 40)
"""


def _python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    ours = ("COLLSHIM_THOROUGH", "COLLSHIM_PROFILE")  # these would make the runs longer too
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment["PYTHONPATH"] = os.pathsep.join((str(folder), str(ROOT)))
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a user's project, with a module of torch's dialect, and pytest's default settings."""
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "__init__.py").touch()
    shutil.copy(EXAMPLE, tmp_path / "mypkg" / "dist.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def _mistaken(
    project: Path, right: str = "for rank in within.ranks]", wrong: str = "for rank in within.ranks[::-1]]"
) -> None:
    """Put a mistake into the project's module, by default in the order of gathered parts."""
    module = project / "mypkg" / "dist.py"
    module.write_text(module.read_text().replace(right, wrong))


def _suite(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    plugin = ("-p", "collshim_pytest", "-p", "no:cacheprovider", "-q")
    return _python("-m", "pytest", *plugin, "--pyargs", "collshim.conformance", *options, folder=project)


def test_options_import_nothing_until_used(tmp_path: Path) -> None:
    done = _python("-c", IMPORTS_NOTHING, folder=tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_suite_imports_without_pytest_and_hypothesis(tmp_path: Path) -> None:
    done = _python("-c", IMPORTS_WITHOUT, folder=tmp_path)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.slow
def test_module_is_tested_and_missing_functions_are_counted(project: Path) -> None:
    done = _suite(project, *OPTIONS, "--size", "2", "-k", "distributed.all_reduce- or distributed.all_to_all-")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 1 skipped" in done.stdout
    assert "missing: mypkg.dist.all_to_all (1 test)" in done.stdout


def test_module_import_can_exceed_the_case_timeout(project: Path) -> None:
    module = project / "mypkg" / "dist.py"
    module.write_text(module.read_text() + "\nimport time\nif 'RANK' in __import__('os').environ:\n    time.sleep(8)\n")
    done = _suite(project, *OPTIONS, "--size", "2", "--collshim-timeout", "6", "-k", "distributed.barrier-")
    assert "1 passed" in done.stdout, done.stdout


def test_mistake_in_the_module_is_found_and_named(project: Path) -> None:
    _mistaken(project, *ORDER)
    done = _suite(project, *OPTIONS, "--size", "2", "-k", ".all_gather-")
    assert done.returncode == 1
    assert "failed: torch.distributed.all_gather: Case('all_gather', seed=1)" in done.stdout
    assert "rank 0: tensor_list[0] at [0, 0] is" in done.stdout


@pytest.mark.slow
def test_known_failures_do_not_fail_the_run(project: Path) -> None:
    _mistaken(project, *ORDER)
    (project / "xfails").write_text("torch.distributed.all_gather  # the order\n")
    chosen = ("--size", "2", "--collshim-xfails-file", "xfails")
    done = _suite(project, *OPTIONS, *chosen, "-k", ".all_gather-")
    assert done.returncode == 0, done.stdout + done.stderr


def test_agreeing_known_failure_fails_the_run(project: Path) -> None:
    line = "torch.distributed.all_reduce: Case('all_reduce', seed=1)"
    (project / "xfails").write_text(line)
    chosen = ("--size", "2", "--collshim-xfails-file", "xfails")
    done = _suite(project, *OPTIONS, *chosen, "-k", "distributed.all_reduce-")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"unexpected pass: {line}: named in xfails, but agrees" in done.stdout


def test_pytest_and_the_command_count_the_same(project: Path) -> None:
    _mistaken(project, "_divided(total, len(parts)) if op == ReduceOp.AVG else total", "total")
    (project / "skips").write_text("torch.distributed.all_reduce: Case('all_reduce', reduce_op='max', seed=1)")
    chosen = ("--framework", "torch", "--adapter", "mypkg.dist", "--collective", "all_reduce", "--size", "2")
    asked = _python("-m", "collshim", "conformance", *chosen, "--skips-file", "skips", folder=project)
    tested = _suite(project, *chosen, "--collshim-skips-file", "skips")
    counts = asked.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ agree, [1-9]\d* failed, .*\d+ functions? missing", counts)
    assert counts in tested.stdout.splitlines(), tested.stdout
    assert (asked.returncode, tested.returncode) == (1, 1)


def test_function_ending_its_process_runs_three_times(project: Path) -> None:
    module = project / "mypkg" / "dist.py"
    module.write_text(module.read_text() + "\ndef barrier(*_, **__):\n    __import__('os')._exit(7)\n")
    done = _suite(project, *OPTIONS, "--collective", "barrier")
    assert "the exception is ProcessEnded: rank 0 of 2 ended, exit code 7, should be none" in done.stdout
    assert "not run: the ranks hung or ended before" in done.stdout


@pytest.mark.parametrize("more", [(), ("--numprocesses", "1")])
def test_run_with_only_skips_is_not_green(project: Path, more: tuple[str, ...]) -> None:
    asked = ("--collshim-collective", "all_gather", "--collshim-size", "2", *more)
    skips = project / "skips.txt"
    skips.write_text("torch.distributed.all_gather\ntorch.distributed.all_gather[async]\n")
    done = _suite(project, *OPTIONS, *asked, "--collshim-skips-file", str(skips))
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr
    assert "conformance: no cases were run" in done.stdout
    assert "passed" not in done.stdout


@pytest.mark.slow
def test_wrong_backend_fails(project: Path) -> None:
    done = _suite(project, "--collshim-backend", "fake", "--size", "2", "-k", "distributed.broadcast-")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "failed: torch.distributed.broadcast" in done.stdout


@pytest.mark.slow
def test_one_collshim_dialect_can_be_selected(project: Path) -> None:
    options = ("--dialect", "megengine", "--transport", "threads", "-k", "barrier")
    done = _suite(project, *options)
    assert "1 passed" in done.stdout, done.stdout


def test_command_options_select_sizes_and_collectives(project: Path) -> None:
    asked = ("--collective", "all_gather", "--collective", "barrier", "--size", "2", "--adapter", "mypkg.dist")
    done = _suite(project, *asked, "--dialect", "torch", "-rp")
    assert done.returncode == 0, done.stdout + done.stderr
    passed = [line.partition("[")[2] for line in done.stdout.splitlines() if line.startswith("PASSED")]
    assert passed
    assert {"barrier" in line or "all_gather" in line for line in passed} == {True}
    assert not any("all_gather_" in line for line in passed)


def test_printed_case_can_be_run_alone(project: Path) -> None:
    _mistaken(project, *ORDER)
    line = "torch.distributed.all_gather: Case('all_gather', seed=1)"
    done = _suite(project, *OPTIONS, "--collshim-case", line)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"failed: {line}" in done.stdout
    assert "1 failed" in done.stdout
    assert "passed" not in done.stdout


GONE = "mypkg.gone cannot be imported: ModuleNotFoundError: No module named 'mypkg.gone'"
CASE = "--collshim-case is 'torch.distributed.all_gather', should be a case"
SIZE = "the size of a world is 0, should be 1 or more"
TIMEOUT = "the timeout is 0, should be a number of seconds above 0"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--adapter", "mypkg.gone", "--dialect", "torch"), GONE),
        (("--adapter", "mypkg.dist"), "--collshim-adapter mypkg.dist needs --collshim-framework"),
        (("--collshim-import", "mypkg.backend"), "--collshim-import mypkg.backend needs --collshim-backend"),
        (("--size", "2"), "--collshim-size needs --collshim-framework"),
        ((*OPTIONS, "--collshim-collective", "all_sum"), "--collshim-collective is all_sum, should be of all_reduce"),
        (
            (*OPTIONS, "--collshim-case", "torch.distributed.all_gather"),
            "'torch.distributed.all_gather', should be a case",
        ),
        ((*OPTIONS, "--collshim-size", "0"), SIZE),
        ((*OPTIONS, "--collshim-timeout", "0"), TIMEOUT),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_invalid_options_are_a_usage_error(project: Path, options: tuple[str, ...], told: str) -> None:
    done = _suite(project, *options)
    assert done.returncode == 4
    assert told in done.stderr


def test_single_case_ignores_kinds_and_sizes(project: Path) -> None:
    line = "torch.distributed.all_gather: Case('all_gather', size=3, kind='numpy', seed=1)"
    done = _suite(project, *OPTIONS, "--collshim-case", line, "--collshim-size", "2", "--collshim-kinds", "torch")
    assert "1 passed" in done.stdout, done.stdout
    assert "skipped" not in done.stdout


def test_project_can_have_options_of_the_same_names(project: Path) -> None:
    (project / "conftest.py").write_text(OWN_OPTION)
    (project / "test_own.py").write_text(OWN_TEST)
    done = _python("-m", "pytest", "-p", "collshim_pytest", "-q", "--adapter", "own", folder=project)
    assert done.returncode == 0, done.stdout + done.stderr
