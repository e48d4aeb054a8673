"""``launcher``: a function on one forked process per device."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.megengine as mge
from collshim.megengine.functional import distributed as F

pytestmark = pytest.mark.processes

dist = mge.distributed


launcher: Any = dist.launcher


def test_local_function_runs_on_every_device_repeatedly() -> None:
    here = 7

    def local(a: int, b: int = 1) -> list[int]:
        total = F.all_reduce_sum(np.array([dist.get_rank() + here]))
        return [dist.get_rank(), a, b, int(total[0])]

    work = launcher(n_gpus=3)(local)
    assert work(5, b=2) == [[0, 5, 2, 24], [1, 5, 2, 24], [2, 5, 2, 24]]
    assert work(6) == [[0, 6, 1, 24], [1, 6, 1, 24], [2, 6, 1, 24]]


@pytest.mark.parametrize("outside", [{}, {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "none"}])
def test_launcher_nested_in_another_sets_its_own_ranks(
    monkeypatch: pytest.MonkeyPatch, outside: dict[str, str]
) -> None:
    around = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "RANK_ID": "0"}
    for name, value in (around | outside).items():
        monkeypatch.setenv(name, value)
    ranks = launcher(lambda: [dist.get_rank(), int(F.all_reduce_sum(np.array([1]))[0])], n_gpus=2)
    assert ranks() == [[0, 2], [1, 2]]


def test_launcher_attributes() -> None:
    def work() -> None:
        return None

    launched = launcher(work, n_gpus=2)
    assert type(launched) is launcher
    assert isinstance(launcher(n_gpus=2), functools.partial)
    assert (launched.n_gpus, launched.world_size, launched.rank_start) == (2, 2, 0)
    assert (launched.backend, launched.device_type, launched.master_ip) == ("nccl", "xpu", "localhost")
    assert launched.func is work
    assert launched.port > 0
    assert launched.server is not None


def fails() -> None:
    if dist.get_rank() == 1:
        raise ValueError("boom")
    time.sleep(60)


def exits(code: int) -> Any:
    if dist.get_rank() == 0:
        sys.exit(code)
    return "x"


def test_failure_ends_other_ranks_and_shows_exit_code() -> None:
    with pytest.raises(AssertionError, match="subprocess 1 exit with code 1") as caught:
        launcher(fails, n_gpus=2)()
    assert isinstance(caught.value, collshim.PeerError)


def lacks_a_name() -> Any:
    return mge.module.NoModule


def test_missing_name_is_raised_once(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'NoModule'.*\(test_launcher.py:\d+: return mge") as caught:
        launcher(lacks_a_name, n_gpus=2)()
    assert isinstance(caught.value, collshim.MissingNameError)
    assert capfd.readouterr().err == ""


def test_exit_with_code_0_returns_none() -> None:
    with pytest.warns(UserWarning, match="subprocess 0 exited before its function returned"):
        assert launcher(exits, n_gpus=2)(0) == [None, "x"]


def returns_a_lambda() -> Any:
    return lambda: None


@pytest.mark.filterwarnings("default:launcher. the result of rank")
def test_unpicklable_result_becomes_none() -> None:
    assert launcher(returns_a_lambda, n_gpus=2)() == [None, None]


@pytest.mark.parametrize(
    ("launch", "kind", "said"),
    [
        (lambda: launcher(exits, n_gpus=2)(3), AssertionError, "subprocess 0 exit with code 3"),
        (lambda: launcher(returns_a_lambda, n_gpus=1)(), AssertionError, "subprocess 0 exit with code 1"),
        (
            lambda: launcher(exits, n_gpus=2, world_size=4, rank_start=2),
            AssertionError,
            "you have to assign a port for",
        ),
        (lambda: launcher(3), TypeError, "func is 3"),
    ],
    ids=["an exit code", "one process", "a second machine without the first's port", "no function"],
)
def test_launch_failures_are_reported(launch: Callable[[], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        launch()


def everybody() -> Any:
    return F.all_gather(np.array([dist.get_rank()])).tolist()


def machine(rank_start: int, port: int) -> Any:
    return launcher(everybody, n_gpus=2, world_size=4, rank_start=rank_start, port=port)()


def test_launchers_of_two_machines_share_a_world(free_port: int) -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as machines:
        results = [machines.submit(machine, rank_start, free_port) for rank_start in (0, 2)]
        assert [result.result() for result in results] == [[[0, 1, 2, 3]] * 2] * 2
