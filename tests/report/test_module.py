"""``collshim conformance`` on a user's module, run by its author in the module's folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import collshim.conformance
from collshim.__main__ import main
from collshim.conformance.missing import is_missing
from tests.robustness.scripts import Ended, run_command

pytestmark = pytest.mark.processes

ROOT = Path(collshim.conformance.__file__).resolve().parents[1]
EXAMPLE = (ROOT / "docs" / "examples" / "store_dist.py").read_text(encoding="utf-8")
WORDS = ("conformance", "--framework", "torch")
NEEDED = "is_initialized = init_process_group = new_group = ReduceOp = None\n"

ROUNDED = """

def rounded(given):
    return given.to(torch.float32).to(given.dtype) if given.dtype in (torch.float64, torch.int64) else given
"""

# The mistakes, by name: a text of the example, and its replacement.
MISTAKES = {
    "order": ("for rank in within.ranks]", "for rank in within.ranks[::-1]]"),
    "precision": ("given = torch.as_tensor(tensor)", "given = rounded(torch.as_tensor(tensor))"),
    "average": ("_divided(total, len(parts)) if op == ReduceOp.AVG else total", "total"),
}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "collshim", *WORDS, *arguments]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


def run(folder: Path, *arguments: str) -> Ended:
    return run_command(folder, *WORDS, *arguments)


def example(folder: Path, mistake: str = "") -> None:
    text, (right, wrong) = EXAMPLE, MISTAKES.get(mistake, ("", ""))
    assert not right or text.count(right) == 1
    (folder / "mine.py").write_text(text.replace(right, wrong) + ROUNDED if right else text, encoding="utf-8")


def test_local_module_agrees_and_missing_functions_are_shown(tmp_path: Path) -> None:
    example(tmp_path)
    done = run(tmp_path, "--adapter", "mine", "--collective", "all_gather", "--size", "2")
    assert done.code == 0, done.out + done.errors
    assert "all_gather  ✓" in done.out
    assert "missing of torch.distributed: all_gather_coalesced, all_gather_into_tensor" in done.out


@pytest.mark.parametrize(
    ("mistake", "collective", "told"),
    [
        pytest.param(
            "order",
            "all_gather",
            "failed: torch.distributed.all_gather: Case('all_gather', seed=1)\n  rank 0: tensor_list",
            marks=pytest.mark.slow,
        ),
        (
            "average",
            "all_reduce",
            "failed: torch.distributed.all_reduce: Case('all_reduce', reduce_op='avg', seed=1)\n"
            "  rank 0: tensor at [0, 0] is 10485722.0, should be 5242861.0\n"
            "    expected [5242861.0, 3145851.0, ",
        ),
        (
            "precision",
            "all_reduce",
            "  rank 0: tensor at [0, 0] is 5764607523034234880, should be 5764607523034234861\n"
            "    expected [5764607523034234861, ",
        ),
    ],
)
def test_mistake_is_found_at_the_smallest_size(tmp_path: Path, mistake: str, collective: str, told: str) -> None:
    example(tmp_path, mistake)
    done = run(tmp_path, "--adapter", "mine", "--collective", collective, "--size", "2")
    assert done.code == 1, done.out + done.errors
    assert told in done.out


def test_printed_case_can_be_run_again(tmp_path: Path) -> None:
    example(tmp_path, "average")
    line = "torch.distributed.all_reduce: Case('all_reduce', reduce_op='avg', seed=1)"
    done = run(tmp_path, "--adapter", "mine", "--case", line)
    assert done.code == 1
    assert f"failed: {line}\n" in done.out
    assert "1 case:\n0 agree, 1 failed, 0 functions missing\n" in done.out


@pytest.mark.slow
def test_files_declare_known_failures_and_skips(tmp_path: Path) -> None:
    example(tmp_path, "order")
    (tmp_path / "xfails").write_text("# the order\ntorch.distributed.all_gather: Case('all_gather', seed=1)\n")
    (tmp_path / "skips").write_text("torch.distributed.all_gather[async]  # not looked at yet\n")
    asked = ["--adapter", "mine", "--collective", "all_gather", "--size", "2", "--skips-file", "skips"]
    done = run(tmp_path, *asked, "--xfails-file", "xfails", "--json", "run.json")
    assert done.code == 1, "the other cases fail"
    cells = json.loads((tmp_path / "run.json").read_text())["cells"]
    functions = {function["name"]: function["cases"] for cell in cells for function in cell["functions"]}
    named = [case for case in functions["torch.distributed.all_gather"] if case["outcome"] == "deviation"]
    assert [(case["case"], case["why"].partition("\n")[0]) for case in named] == [
        ("Case('all_gather', seed=1)", "named in xfails")
    ]
    assert functions["torch.distributed.all_gather[async]"] == []
    example(tmp_path)
    agrees = run(tmp_path, *asked, "--xfails-file", "xfails")
    assert agrees.code == 1
    assert "unexpected pass: torch.distributed.all_gather: Case('all_gather', seed=1): named in xfails" in agrees.out


# The folder's module, the request, and the output.
REFUSED = [
    ("", ["--adapter", "no.such.module"], "no.such.module cannot be imported: ModuleNotFoundError: No module named"),
    ("", ["--adapter", "mine:dist"], "the module is 'mine:dist', should be a dotted name: mypkg.dist"),
    ("raise RuntimeError('not today')", ["--adapter", "mine"], "mine cannot be imported: RuntimeError: not today"),
    ("import os; os._exit(7)", ["--adapter", "mine"], "mine cannot be imported: it ends the process, exit code 7"),
    (NEEDED, ["--adapter", "mine"], "no cases can be run: mine has none of mine.all_gather"),
    (
        "def all_reduce(): ...",
        ["--adapter", "mine", "--collective", "all_reduce"],
        "mine has mine.all_reduce, but not mine.is_initialized and mine.init_process_group and mine.new_group",
    ),
    ("", ["--adapter", "mine", "--case", "Case(1"], "is not a case, should be one as a run prints it"),
    ("", ["--adapter", "mine", "--skips-file", "none"], "none: No such file or directory"),
    ("", ["--backend", "nope"], "--backend is nope, torch.distributed has gloo, nccl"),
    ("", ["--backend", "mine", "--import", "nope"], "nope cannot be imported: ModuleNotFoundError"),
    ("", ["--import", "registering"], "there is no --backend for it to register"),
    ("", ["--backend", "gloo", "--real"], "--backend is torch's"),
]


@pytest.mark.parametrize(("text", "asked", "told"), REFUSED, ids=lambda value: value[1] if type(value) is list else "")
def test_invalid_request_is_refused_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    asked: list[str],
    told: str,
) -> None:
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    is_missing.cache_clear()
    try:
        assert main(["conformance", "--framework", "torch", *asked]) == 2
    finally:
        is_missing.cache_clear()
        sys.modules.pop("mine", None)
    out, error = capsys.readouterr()
    assert out == ""
    assert told in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--size", "0", "the size of a world is 0, should be 1 or more"),
        ("--size", "two", "the size of a world is two, should be 1 or more"),
        ("--timeout", "0", "the timeout is 0, should be a number of seconds above 0"),
        ("--timeout", "5min", "the timeout is 5min, should be a number of seconds above 0"),
        ("--timeout", "nan", "the timeout is nan, should be a number of seconds above 0"),
        ("--timeout", "inf", "the timeout is inf, should be a number of seconds above 0"),
    ],
)
def test_invalid_number_is_refused(option: str, value: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["conformance", option, value])
    assert end.value.code == 2
    assert f"argument {option}: {told}" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_shows_and_writes_the_results(tmp_path: Path) -> None:
    example(tmp_path)
    asked = command("--adapter", "mine", "--collective", "all_gather", "--json", "run.json")
    with subprocess.Popen(
        asked, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while " of " not in process.stderr.readline():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=200)
    assert process.returncode == 130
    assert "interrupted: these are the results so far" in out
    assert json.loads((tmp_path / "run.json").read_text())["cells"]


@pytest.mark.slow
def test_hanging_module_costs_seconds(tmp_path: Path) -> None:
    text = EXAMPLE.replace(
        "def all_gather(", "def all_gather(*_, **__):\n    import time; time.sleep(1000)\n\ndef unused("
    )
    (tmp_path / "mine.py").write_text(text)
    began = time.monotonic()
    done = run(tmp_path, "--adapter", "mine", "--collective", "all_gather", "--size", "2", "--timeout", "4")
    assert done.code == 1, done.out + done.errors
    assert "did not answer in time (4 s)" in done.out
    assert "not run: the ranks hung or ended before" in done.out
    assert time.monotonic() - began < 90


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_torch_module_is_green(tmp_path: Path) -> None:
    done = subprocess.run(
        command("--adapter", "torch.distributed", "--size", "2"),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "0 failed" in done.stdout


def test_torch_module_is_green_in_its_reductions(tmp_path: Path) -> None:
    done = run(tmp_path, "--adapter", "torch.distributed", "--collective", "all_reduce", "barrier", "--size", "2")
    assert done.code == 0, done.out[-3000:]
    assert "0 failed" in done.out


BACKEND = """\
import torch.distributed as dist

from torch.distributed import ProcessGroupGloo


def make(store, rank, size, timeout):
    return ProcessGroupGloo(store, rank, size, timeout)


dist.Backend.register_backend("mine", make, devices=["cpu"])
"""


def test_backend_registered_by_a_local_module_is_tested(tmp_path: Path) -> None:
    (tmp_path / "registering.py").write_text(BACKEND, encoding="utf-8")
    asked = ("--collective", "barrier", "--size", "2")
    done = run(tmp_path, "--backend", "mine", "--import", "registering", *asked)
    assert done.code == 0, done.out + done.errors
    assert " 0 failed" in done.out


@pytest.mark.slow
def test_wrong_backend_fails(tmp_path: Path) -> None:
    done = run(tmp_path, "--backend", "fake", "--collective", "all_reduce", "--size", "2")
    assert done.code == 1, done.out + done.errors
