"""pytest's plugin for runs on the simulated CUDA: a test fails if the model has something to report.

``-p tests.cuda_model.plugin`` installs the stand-ins for aten's kernels before any test is collected.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator

import pytest
import torch

from tests.cuda_model import kernels, model
from tests.cuda_model.hardware import IS_NCCL2

DEVICES = 4

_SHOWN = 6

_PROTOTYPE = "Synchronization debug mode is a prototype feature"
"""torch's warning about itself if a test checks whether the host waits."""


def pytest_configure(config: pytest.Config) -> None:
    """Replace the kernels, once in a process."""
    config.addinivalue_line("markers", "reports(text): the model must report this; anything else fails the test")
    config.addinivalue_line("filterwarnings", f"ignore:{_PROTOTYPE}:UserWarning")
    if not model.is_there():
        raise pytest.UsageError("torch's CUDA is not the simulated one here; see tests/cuda_model/README.md")
    model.set_always("devices", DEVICES)
    model.set_always("watchdog_tells", int(IS_NCCL2))
    kernels.install()
    atexit.register(model.stop)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Check the model's reports of the test, once every device is at rest."""
    model.clear()
    yield
    try:
        model.synchronize_all()
    except torch.AcceleratorError as error:
        pytest.fail(f"the devices did not become idle: {error}; {_shown(model.reports())}")
    found = model.reports()
    model.clear()
    wanted = next((mark.args[0] for mark in item.iter_markers("reports")), None)
    if wanted is not None:
        assert found
        assert all(wanted in text for text in found), _shown(found)
    elif found:
        pytest.fail(f"{len(found)} reports: {_shown(found)}")


def _shown(found: list[str]) -> str:
    return "\n".join(list(dict.fromkeys(found))[:_SHOWN])
