"""A random number generator for each thread, so that ranks that are threads draw like ranks that are processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_lock = threading.Lock()
_own = threading.local()


class _OwnState(TorchDispatchMode):
    """Makes each operation that draws random numbers use this thread's generator state."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        with _lock:
            kept = torch.get_rng_state()
            torch.set_rng_state(_own.state)
            try:
                return func(*args, **kwargs)
            finally:
                _own.state = torch.get_rng_state()
                torch.set_rng_state(kept)


@contextmanager
def own_random_numbers() -> Iterator[None]:
    """Give this thread a generator state of its own inside the block; ``seed`` seeds it."""
    _own.state = torch.Generator().manual_seed(0).get_state()
    try:
        with _OwnState():  # type: ignore[no-untyped-call]
            yield
    finally:
        del _own.state


def state(device: torch.device) -> torch.Tensor:
    """Return the generator state that this thread uses on a device."""
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    own: torch.Tensor | None = getattr(_own, "state", None)
    return torch.get_rng_state() if own is None else own


def seed(process: Any, number: int) -> Any:
    """Seed this thread's generator if it has one; else call ``process``, which seeds the process's."""
    if not hasattr(_own, "state"):
        return process(number)
    generator = torch.Generator().manual_seed(number)
    _own.state = generator.get_state()
    return generator
