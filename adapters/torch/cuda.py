"""``torch.cuda`` of a program under a stand-in: torch's own or, if names of GPUs mean the CPU, functions of the CPU.

With ``COLLSHIM_DEVICE=cpu`` (``collshim run --device cpu``) on a machine without GPUs, a program sees as many GPUs as
the machine has ranks, or ``COLLSHIM_DEVICES`` of them. Libraries, which keep torch's own module, see none. Seeds and
states of random numbers are the CPU's, streams are always ready, each GPU has the machine's memory, of which none is in
use, and ranges for profilers have no effect. What only a GPU can do, such as a CUDA graph, fails as in torch.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from types import SimpleNamespace
from typing import Any

import torch
import torch.cuda as _cuda

from collshim.adapting import devices as _devices

_THREAD = threading.local()
"""The number of this thread's current GPU."""


def __getattr__(name: str) -> Any:
    if name in _PRETENDED and _devices.is_pretended():
        return _PRETENDED[name]
    return getattr(_cuda, name)


def __dir__() -> list[str]:
    return dir(_cuda)


def _current_device() -> int:
    return getattr(_THREAD, "number", 0)


def _set_device(device: Any) -> None:
    """Choose a GPU by its number or name; this rank's GPU for a device without a number, such as the CPU."""
    if isinstance(device, int):
        number = device
    else:
        named = _devices.named(device)
        number = _devices.own_number() if named is None or named.number is None else named.number
    if number >= 0:
        _devices.resolve(f"cuda:{number}")  # refuses a number beyond the GPUs that the program sees
        _THREAD.number = number


class _Device:
    """Chooses a GPU in a block; ``None`` changes nothing."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._before = -1

    def __enter__(self) -> None:
        self._before = _current_device()
        if self._device is not None:
            _set_device(self._device)

    def __exit__(self, *raised: object) -> None:
        _THREAD.number = self._before


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing: the CPU has no counterpart, or is always ready."""


def _seed_with(seed: int) -> None:
    """Seed the CPU's generator; ``torch.manual_seed`` would call this again."""
    torch.default_generator.manual_seed(int(seed))


def _zero(*args: Any, **kwargs: Any) -> int:
    return 0


class _Stream:
    """A stream that is always ready."""

    def __init__(self, device: Any = None, priority: int = 0, **more: Any) -> None:
        self.priority = priority

    def query(self) -> bool:
        return True

    def record_event(self, event: _Event | None = None) -> _Event:
        recorded = _Event() if event is None else event
        recorded.record(self)
        return recorded

    synchronize = wait_event = wait_stream = _nothing


class _Event:
    """An event that has happened as soon as it is recorded."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self._recorded = 0.0

    def record(self, stream: Any = None) -> None:
        self._recorded = time.perf_counter()

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: _Event) -> float:
        """Return the milliseconds between the records of two events."""
        return 1e3 * (end_event._recorded - self._recorded)

    synchronize = wait = _nothing


def _total_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _properties(device: Any = None) -> Any:
    return SimpleNamespace(
        name="CPU", major=8, minor=0, total_memory=_total_memory(), multi_processor_count=1, warp_size=32,
        max_threads_per_multi_processor=1024, L2_cache_size=0, is_integrated=1, is_multi_gpu_board=0, gcnArchName="",
    )  # fmt: skip


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, list[Any]]:
    return {"segments": [], "device_traces": []}


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def _is_memory_function(name: str) -> bool:
    return name.startswith(("max_memory_", "memory_allocated", "memory_reserved", "memory_cached"))


_BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
_COUNTS = ("allocation", "segment", "active", "inactive_split")
_POOLS = ("all", "small_pool", "large_pool")
_STATISTICS = [
    *(".".join(key) for key in product((*_BYTES, *_COUNTS), _POOLS, ("current", "peak", "allocated", "freed"))),
    *("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "num_sync_all_streams", "max_split_size"),
]
"""The keys of ``torch.cuda.memory_stats`` that programs read, as torch 2.13 documents them."""

_OF_NVML = ("clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization")

_PRETENDED: dict[str, Callable[..., Any]] = {
    "Event": _Event,
    "Stream": _Stream,
    "caching_allocator_enable": _nothing,
    "can_device_access_peer": lambda device, peer_device: False,
    "check_error": _nothing,
    "cudart": lambda: SimpleNamespace(cudaProfilerStart=_zero, cudaProfilerStop=_zero),
    "current_device": _current_device,
    "current_stream": _Stream,
    "default_stream": _Stream,
    "device": _Device,
    "device_count": _devices.count,
    "empty_cache": _nothing,
    "get_allocator_backend": lambda: "native",
    "get_device_capability": lambda device=None: (8, 0),
    "get_device_name": lambda device=None: "CPU",
    "get_device_properties": _properties,
    "get_per_process_memory_fraction": lambda device=None: 1.0,
    "get_rng_state": lambda device="cuda": torch.get_rng_state(),
    "get_rng_state_all": lambda: [torch.get_rng_state()] * _devices.count(),
    "get_sync_debug_mode": _zero,
    "host_memory_stats": dict,
    "host_memory_stats_as_nested_dict": dict,
    "init": _nothing,
    "initial_seed": torch.initial_seed,
    "ipc_collect": _nothing,
    "is_available": _devices.is_available,
    "is_bf16_supported": lambda including_emulation=True: True,
    "is_current_stream_capturing": lambda: False,
    "is_initialized": lambda: True,
    "manual_seed": _seed_with,
    "manual_seed_all": _seed_with,
    "mem_get_info": lambda device=None: (_total_memory(), _total_memory()),
    "memory_snapshot": lambda mempool_id=None, include_traces=False: [],
    "memory_stats": lambda device=None: dict.fromkeys(_STATISTICS, 0),
    "memory_stats_as_nested_dict": lambda device=None: {},
    "memory_summary": lambda device=None, abbreviated=False: "",
    "seed": lambda: _seed_with(torch.default_generator.seed()),
    "seed_all": lambda: _seed_with(torch.default_generator.seed()),
    "set_device": _set_device,
    "set_per_process_memory_fraction": _nothing,
    "set_rng_state": lambda new_state, device="cuda": torch.set_rng_state(new_state),
    "set_rng_state_all": lambda new_states: torch.set_rng_state(new_states[0]),
    "set_stream": _nothing,
    "set_sync_debug_mode": _nothing,
    "stream": lambda stream: nullcontext(),
    "synchronize": _nothing,
    **{name: _zero for name in dir(_cuda) if _is_memory_function(name) or name in _OF_NVML},
    **{name: _nothing for name in dir(_cuda) if name.startswith("reset_")},
}
"""The functions that replace torch's in a program while names of GPUs mean the CPU."""

_OF_THE_PROGRAM = ("device_count", "is_available", "is_initialized")
"""The functions that stay torch's for libraries and collshim itself, so that these choose the CPU."""


_OF_SUBMODULES: dict[str, dict[str, Callable[..., Any]]] = {
    "memory": {
        **{name: value for name, value in _PRETENDED.items() if name in dir(_cuda.memory)},
        "_dump_snapshot": _dump_snapshot,
        "_record_memory_history": _nothing,
        "_snapshot": _snapshot,
    },
    "nvtx": {"mark": _nothing, "range_push": _zero, "range_pop": _zero, "range_start": _zero, "range_end": _nothing},
    "profiler": {"start": _nothing, "stop": _nothing},
}
"""The functions that replace those of the modules in ``torch.cuda``."""


def for_libraries() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Return replacements for torch's own functions, which fail without a GPU, each with its module and name."""
    own = [(_cuda, name, value) for name, value in _PRETENDED.items() if name not in _OF_THE_PROGRAM]
    modules = {name: getattr(_cuda, name) for name in _OF_SUBMODULES}
    return own + [(modules[part], name, value) for part in modules for name, value in _OF_SUBMODULES[part].items()]
