"""The handling of CUDA streams that is visible without a GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim.transports.streams import hold


class _Recording(torch.Tensor):
    """A tensor that counts how often a stream is recorded on it, or on a view of it."""

    calls = 0

    def record_stream(self, s: Any) -> None:
        _Recording.calls += 1


@pytest.mark.parametrize("shape", [(), (1000,), (1000, 2)])
def test_result_is_held_as_one_tensor(shape: tuple[int, ...]) -> None:
    _Recording.calls = 0
    hold(torch.zeros(shape).as_subclass(_Recording), "stream")  # type: ignore[arg-type]  # there is none here
    assert _Recording.calls == 1


def test_each_part_of_a_list_is_held() -> None:
    _Recording.calls = 0
    hold([torch.zeros(5).as_subclass(_Recording) for _ in range(3)], "stream")  # type: ignore[arg-type]
    assert _Recording.calls == 3
