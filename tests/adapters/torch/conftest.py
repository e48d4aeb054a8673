"""Ranks that are threads and have a default group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import collshim
import collshim.torch.distributed as dist
from tests.adapters.conftest import Around


@pytest.fixture
def around() -> Around:
    def grouped(fn: Callable[[], Any]) -> Any:
        dist.init_process_group("gloo")
        result = fn()
        dist.destroy_process_group()
        return result

    return grouped


@pytest.fixture
def ours() -> type[Exception]:
    return collshim.CollshimError
