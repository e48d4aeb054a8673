"""Names of devices: their meaning, and what they stand for on a machine without a GPU."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
import torch

import collshim
from collshim import log
from collshim.adapting import devices

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")


@pytest.fixture(autouse=True)
def _no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLLSHIM_DEVICE", "COLLSHIM_DEVICES", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pretended() -> Iterator[None]:
    with collshim.options(device="cpu"):
        yield


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("cpu", ("cpu", None)),
        ("cpu:1", ("cpu", 1)),
        ("CPU", ("cpu", None)),
        ("cuda", ("cuda", None)),
        ("cuda:1", ("cuda", 1)),
        ("gpu0", ("gpu", 0)),
        ("gpux", ("gpu", None)),
        ("xpu0:1", ("xpu", 0)),
        ("Ascend", ("ascend", None)),
        ("npu:3", ("npu", 3)),
        ("GPU", ("gpu", None)),
        ("GPU:1", ("gpu", 1)),
        ("/device:GPU:1", ("gpu", 1)),
        ("/job:worker/replica:0/task:1/device:CPU:0", ("cpu", 0)),
        (torch.device("cuda", 2), ("cuda", 2)),
        ("tpu", None),
        ("cuda:one", None),
        ("", None),
    ],
)
def test_device_names_are_parsed(name: str, wanted: tuple[str, int | None] | None) -> None:
    assert devices.named(name) == wanted


@pytest.mark.parametrize("name", ["cpu", "cpu0", "CPU:1", "/CPU:0"])
def test_cpu_needs_no_switch(name: str) -> None:
    assert devices.resolve(name) == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "gpu0", "xpu0:1", "Ascend", "npu", "GPU"])
def test_missing_accelerator_error_names_the_switch(name: str) -> None:
    with pytest.raises(KeyError, match=r"no GPU: .*COLLSHIM_DEVICE=cpu, collshim run --device cpu") as caught:
        devices.resolve(name, KeyError)
    assert isinstance(caught.value, collshim.ArgumentValueError)


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("name", ["cuda", "cuda:7", "gpu0", "xpu0:1", "Ascend", "npu", "GPU"])
def test_switch_maps_accelerators_to_the_cpu(name: str) -> None:
    assert devices.resolve(name) == torch.device("cpu")


def test_variable_is_a_switch_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_DEVICE", "cpu")
    assert devices.resolve("cuda:1") == torch.device("cpu")
    assert devices.is_pretended()


def test_device_known_only_to_torch_is_torchs() -> None:
    assert devices.resolve("meta") == torch.device("meta")


def test_invalid_device_error_lists_valid_ones() -> None:
    with pytest.raises(TypeError, match="device is 'tpu:x', should be 'cpu', or one of cuda, gpu"):
        devices.resolve("tpu:x", TypeError)


def test_refusal_names_the_rank() -> None:
    with pytest.raises(collshim.RankError, match=r"no GPU.*\(rank [01] of 2\)"):
        collshim.launch(lambda: devices.resolve("cuda"), 2)


def test_no_accelerators_without_the_switch() -> None:
    assert (devices.count(), devices.is_available(), devices.is_pretended()) == (0, False, False)


@pytest.mark.usefixtures("pretended")
def test_pretended_count_is_the_local_rank_count() -> None:
    assert devices.count() == 1
    assert collshim.launch(devices.count, 3) == [3, 3, 3]


@pytest.mark.usefixtures("pretended")
def test_pretended_count_comes_from_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    assert devices.count() == 4


@pytest.mark.usefixtures("pretended")
def test_pretended_count_is_an_option_that_limits_numbers() -> None:
    with collshim.options(devices=2):
        assert devices.count() == 2
        assert devices.resolve("cuda:1") == torch.device("cpu")
        with pytest.raises(RuntimeError, match="'cuda:2', should have a number below 2: as many options"):
            devices.resolve("cuda:2")


TELLS = """
from collshim.adapting import devices
for name in ("gpu0", "cuda", "Ascend"):
    devices.resolve(name)
"""


@pytest.mark.processes
def test_fallback_is_reported_once_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_DEVICE", "cpu")
    done = subprocess.run([sys.executable, "-c", TELLS], capture_output=True, text=True, timeout=200)
    assert done.stderr == "this machine has no GPU: 'gpu0' and other names of accelerators mean the CPU here\n"


@pytest.mark.usefixtures("pretended")
def test_log_is_named_collshim(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_warned", {})
    with caplog.at_level(logging.WARNING, "collshim"):
        devices.resolve("cuda")
        devices.resolve("cuda")
    assert [(record.name, record.levelname) for record in caplog.records] == [("collshim", "WARNING")]


@pytest.mark.processes
def test_fallback_is_reported_once_by_two_threads(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=20)

    class Gpus:
        def device_count(self) -> int:
            both.wait()
            return 1

    monkeypatch.setattr(devices, "module", Gpus)
    collshim.launch(lambda: devices.tell_of_cpu("of_a_test"), 2, timeout=200)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "collshim.of_a_test keeps tensors on the CPU"
    ]
