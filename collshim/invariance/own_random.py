"""Random numbers of each thread's own, as ranks that are processes have them."""

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
    """Lets each operation that draws random numbers draw them from this thread's state."""

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
    """Give this thread random numbers of its own inside the block, which ``seed`` seeds."""
    _own.state = torch.Generator().manual_seed(0).get_state()
    try:
        with _OwnState():  # type: ignore[no-untyped-call]
            yield
    finally:
        del _own.state


def state(device: torch.device) -> torch.Tensor:
    """Return the state from which this thread draws on a device."""
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    own: torch.Tensor | None = getattr(_own, "state", None)
    return torch.get_rng_state() if own is None else own


def seed(process: Any, number: int) -> Any:
    """Seed this thread's generator if it has one, else the process's by calling ``process``."""
    if not hasattr(_own, "state"):
        return process(number)
    generator = torch.Generator().manual_seed(number)
    _own.state = generator.get_state()
    return generator
