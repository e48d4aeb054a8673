"""The simulated CUDA itself: what it must report, what it must not, and that torch computes on it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.engine.worlds import attempt

require_model()

NUMBERS = 1000


def ones() -> Tensor:
    return torch.ones(NUMBERS, device="cuda")


@pytest.fixture
def aside() -> torch.cuda.Stream:
    torch.cuda.synchronize()
    return torch.cuda.Stream()


def on(stream: torch.cuda.Stream, make: Callable[[], Tensor]) -> Tensor:
    with torch.cuda.stream(stream):
        return make()


def read(stream: torch.cuda.Stream, x: Tensor) -> Tensor:
    return on(stream, lambda: x + 1)


def left_behind(stream: torch.cuda.Stream, x: Tensor) -> None:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        stream.wait_stream(torch.cuda.current_stream())
        read(stream, x)


def alone(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an interpreter that has the model, but no stand-ins for aten's kernels."""
    command = [sys.executable, "-c", f"import torch; {code}"]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=200, check=False)


def test_hidden_devices_do_not_exist() -> None:
    done = alone("print(torch.cuda.is_available(), torch.cuda.device_count())", CUDA_VISIBLE_DEVICES="")
    assert done.stdout == "False 0\n", done.stderr


def test_missing_kernel_error_explains_how_to_add_it() -> None:
    done = alone("torch.ones(2, device='cuda')")
    assert done.returncode == 1
    assert (
        "simulated CUDA error 98: a kernel that is not modelled; aten's are, where pytest is run with -p "
        in done.stderr
    )


def test_torch_computes(aside: torch.cuda.Stream) -> None:
    x = torch.arange(6.0, device="cuda").view(2, 3)
    y = (x * 2 + 1).t().contiguous()
    assert y.cpu().tolist() == [[1, 7], [3, 9], [5, 11]]
    assert y.sum().item() == 36
    assert torch.complex(x, x).conj().imag[1].tolist() == [-3, -4, -5]


def test_autograd_runs() -> None:
    x = torch.full((3,), 2.0, device="cuda", requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4, 4, 4]


@pytest.mark.reports("RACE")
def test_unordered_read_is_a_race(aside: torch.cuda.Stream) -> None:
    x = ones()
    read(aside, x)


@pytest.mark.reports("RACE")
def test_unordered_write_is_a_race(aside: torch.cuda.Stream) -> None:
    x = ones()
    aside.wait_stream(torch.cuda.current_stream())
    read(aside, x)
    x.zero_()


@pytest.mark.reports("RACE")
def test_memory_reused_too_early_is_a_race(aside: torch.cuda.Stream) -> None:
    x = ones()
    aside.wait_stream(torch.cuda.current_stream())
    read(aside, x)
    del x
    ones()


def test_recorded_memory_is_not_reused_too_early(aside: torch.cuda.Stream) -> None:
    x = ones()
    aside.wait_stream(torch.cuda.current_stream())
    read(aside, x)
    x.record_stream(aside)
    del x
    ones()


def test_waiting_stream_is_not_a_race(aside: torch.cuda.Stream) -> None:
    x = ones()
    aside.wait_stream(torch.cuda.current_stream())
    y = read(aside, x)
    torch.cuda.current_stream().wait_stream(aside)
    assert (y + x).unique().tolist() == [3]


def test_two_reads_are_not_a_race(aside: torch.cuda.Stream) -> None:
    x = ones()
    torch.cuda.synchronize()
    read(aside, x)
    read(torch.cuda.current_stream(), x)


def test_host_wait_prevents_a_race(aside: torch.cuda.Stream) -> None:
    x = ones()
    torch.cuda.current_stream().synchronize()
    read(aside, x)


def test_event_orders_through_a_third_stream(aside: torch.cuda.Stream) -> None:
    x, third = ones(), torch.cuda.Stream()
    third.wait_stream(torch.cuda.current_stream())
    aside.wait_event(third.record_event())
    on(aside, lambda: x.add_(1))
    torch.cuda.current_stream().wait_stream(aside)
    assert x.unique().tolist() == [2]


@pytest.mark.reports("STUCK")
def test_stuck_device_is_reported_with_its_obstacle() -> None:
    with model.setting("held", 1), model.setting("patience", 0.2):
        x = ones()
        with pytest.raises(torch.AcceleratorError):
            torch.cuda.synchronize()
        assert "stands before" in model.reports()[0]
    assert x.sum().item() == NUMBERS


def test_host_runs_ahead_of_a_held_device() -> None:
    with model.setting("held", 1):
        x = ones() * 3
        event = torch.cuda.Event()
        event.record()
        assert not event.query()
    assert x.unique().tolist() == [3]
    assert event.query()


def test_spin_keeps_its_stream_busy(aside: torch.cuda.Stream) -> None:
    with torch.cuda.stream(aside):
        torch.cuda._sleep(1_500_000_000)
        event = torch.cuda.Event()
        event.record()
    assert not event.query()
    assert ones().sum().item() == NUMBERS


def test_replay_computes_from_current_values() -> None:
    x, graph = ones(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    assert y.unique().tolist() == [0]  # nothing was computed in the capture
    for factor in (1, 5):
        x.fill_(factor)
        graph.replay()
        assert y.unique().tolist() == [2 * factor]


@pytest.mark.reports("CAPTURE")
def test_capture_leaving_an_unjoined_stream_is_reported(aside: torch.cuda.Stream) -> None:
    x = ones()
    with pytest.raises(torch.AcceleratorError):
        left_behind(aside, x)


def asked_elsewhere(mode: str) -> None:
    x, event = ones(), torch.cuda.Event()
    event.record()
    with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode=mode):
        thread = threading.Thread(target=lambda: attempt(event.query))
        thread.start()
        thread.join()
        x.mul_(2)


@pytest.mark.reports("CAPTURE")
def test_event_query_of_another_thread_breaks_strict_capture() -> None:
    asked_elsewhere("global")


def test_thread_local_capture_survives_other_threads() -> None:
    asked_elsewhere("thread_local")


def test_torch_debug_mode_sees_host_waits() -> None:
    x = ones()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchronizing"):
            x.sum().item()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_every_device_has_its_own_memory_and_streams() -> None:
    found = [torch.full((2,), float(number), device=f"cuda:{number}") for number in range(torch.cuda.device_count())]
    assert [tensor.tolist() for tensor in found] == [[number, number] for number in range(4)]
