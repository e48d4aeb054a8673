"""What the programs share: a default group over the given backend, and figures that the runner compares."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

FIGURES = "figures "
"""The start of each line of figures."""

LIMIT = timedelta(seconds=60)
"""How long a call may take."""


def register(backend: str) -> None:
    """Register the backend with torch, as a user does below torch 2.14, which finds it by its name."""
    if backend == "collshim":
        import collshim.torch.distributed  # noqa: F401


@contextmanager
def default_group(backend: str) -> Iterator[tuple[int, int]]:
    """Make torch's default group; give this rank and the number of ranks."""
    import torch.distributed as dist

    register(backend)
    dist.init_process_group(backend, timeout=LIMIT)
    yield dist.get_rank(), dist.get_world_size()
    gc.collect()
    time.sleep(0.3)  # gloo's thread may be dropping its last work, for which it needs the interpreter
    dist.destroy_process_group()


def run(program: Callable[..., None]) -> None:
    """Call ``program(rank, size, *arguments)`` with the default group of the backend that is the first argument."""
    with default_group(sys.argv[1]) as (rank, size):
        program(rank, size, *sys.argv[2:])


def run_named(uses: Mapping[str, Callable[[int, int], object]]) -> None:
    """Run the uses that the arguments name, each with the rank and the number of ranks, and show the results."""

    def program(rank: int, size: int, *names: str) -> None:
        for name in names:
            show(rank, name=name, found=uses[name](rank, size))

    run(program)


def show(rank: int, /, **figures: Any) -> None:
    """Print a line of this rank's figures in one piece; tensors become lists."""
    line = FIGURES + json.dumps({"rank": rank, **{name: _plain(value) for name, value in figures.items()}}) + "\n"
    sys.stdout.flush()
    os.write(1, line.encode())


def weights(model: torch.nn.Module) -> list[float]:
    """Return the sum of the squares of each parameter of the model."""
    return [float(parameter.detach().double().square().sum()) for parameter in model.parameters()]


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value
