"""``collshim info``: what is here, for a report or to see what a launcher says; a line each."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy
import torch
import torch.distributed

from collshim.accelerator import ACCELERATOR, module
from collshim.environment import read
from collshim.errors import WorldError
from collshim.frameworks import FRAMEWORKS

_BESIDE = (*(name for name in FRAMEWORKS if name != "torch"), "cupy")
_BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl")


def lines(own: str) -> Iterator[str]:
    """What is told; ``own`` is collshim's version."""
    yield f"collshim    {own}, {Path(__file__).resolve().parent.parent}"
    yield f"Python      {platform.python_version()}, {sys.executable}"
    yield f"system      {platform.platform()}, {os.cpu_count()} CPUs"
    yield f"torch       {torch.__version__}, backends {', '.join(filter(_is_there, _BACKENDS))}"
    yield f"NumPy       {numpy.__version__}"
    yield f"devices     {_devices()}"
    yield f"beside it   {', '.join(filter(None, map(_installed, _BESIDE))) or 'none of ' + ', '.join(_BESIDE)}"
    yield f"launcher    {_launcher()}"
    chosen = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("COLLSHIM_")]
    yield f"set         {', '.join(map(_hidden, chosen)) or 'no COLLSHIM_ variable'}"


def _is_there(backend: str) -> bool:
    available = getattr(torch.distributed, f"is_{backend}_available", None)
    return available is not None and bool(available())


def _devices() -> str:
    gpus = module()
    if not gpus.is_available():
        return f"CPU alone (torch {'was built without' if torch.version.cuda is None else 'sees no'} {ACCELERATOR})"
    return ", ".join(gpus.get_device_name(number) for number in range(gpus.device_count()))


def _installed(name: str) -> str:
    for distribution in (name, f"{name}-cuda12x", f"{name}-cuda13x"):
        try:
            return f"{name} {version(distribution)}"
        except PackageNotFoundError:
            continue
    return ""


def _launcher() -> str:
    try:
        place = read(None, None, None, None, needs_address=True)
    except WorldError as error:
        return f"says too little: {error}"
    if place.size == 1:
        return "none: a world of one rank"
    return f"rank {place.rank} of {place.size}, rank 0 at {place.address}:{place.port}"


def _hidden(setting: str) -> str:
    """A world's secret is not told."""
    name, _, value = setting.partition("=")
    return f"{name}=(hidden)" if name == "COLLSHIM_SECRET" and value else setting
