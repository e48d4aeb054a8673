"""``collshim info``: print versions, devices and launcher, one per line, for bug reports and to check a launcher."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy
import torch
import torch.distributed

from collshim import processors
from collshim.accelerator import ACCELERATOR, module
from collshim.environment import read
from collshim.errors import ArgumentValueError, WorldError
from collshim.frameworks import FRAMEWORKS

_OTHERS = (*(name for name in FRAMEWORKS if name != "torch"), "cupy")
_BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl")


def lines(own: str) -> Iterator[str]:
    """Yield the lines of the report; ``own`` is collshim's version."""
    yield f"collshim    {own}, {Path(__file__).resolve().parent.parent}"
    yield f"Python      {platform.python_version()}{_gil()}, {sys.executable}"
    yield f"system      {platform.platform()}, {_processors()}"
    yield f"torch       {torch.__version__}, backends {', '.join(filter(_is_available, _BACKENDS))}"
    yield f"NumPy       {numpy.__version__}"
    yield f"devices     {_devices()}"
    yield f"core        {_core()}"
    yield f"installed   {', '.join(filter(None, map(_version_of, _OTHERS))) or 'none of ' + ', '.join(_OTHERS)}"
    yield f"launcher    {_launcher()}"
    chosen = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("COLLSHIM_")]
    yield f"settings    {', '.join(map(_hide_secret, chosen)) or 'no COLLSHIM_ variable is set'}"


def _gil() -> str:
    """Describe a free-threaded Python; return an empty text for other builds."""
    has_lock: Any = getattr(sys, "_is_gil_enabled", None)
    if not sysconfig.get_config_var("Py_GIL_DISABLED") or has_lock is None:
        return ""
    return f", free-threaded, with the GIL {'on' if has_lock() else 'off'}"


def _processors() -> str:
    """Return how many processors the machine has, and how many of them this process may use, if not all."""
    count, usable = os.cpu_count() or 1, processors.usable()
    return f"{count} CPUs" + (f", {usable} usable by this process" if usable < count else "")


def _is_available(backend: str) -> bool:
    available = getattr(torch.distributed, f"is_{backend}_available", None)
    return available is not None and bool(available())


def _devices() -> str:
    gpus = module()
    if not gpus.is_available():
        return f"CPU only (torch {'was built without' if torch.version.cuda is None else 'sees no'} {ACCELERATOR})"
    return ", ".join(gpus.get_device_name(number) for number in range(gpus.device_count()))


def _core() -> str:
    """Return which core of shared memory is in use, and whether ranks cannot read each other's memory."""
    try:
        from collshim.transports.shared_memory import core, yama  # chooses the core, or raises
    except (ImportError, ArgumentValueError) as error:
        return f"none: {error}"
    refusal = yama.refusal()
    return core.description() + (f"; data of more than 64 KB is copied twice, because {refusal}" if refusal else "")


def _version_of(name: str) -> str:
    for distribution in (name, f"{name}-cuda12x", f"{name}-cuda13x"):
        try:
            return f"{name} {version(distribution)}"
        except PackageNotFoundError:
            continue
    return ""


def _launcher() -> str:
    try:
        launched = read(None, None, None, None, needs_address=True)
    except WorldError as error:
        return f"incomplete: {error}"
    if launched.size == 1:
        return "none: a world of one rank"
    return f"rank {launched.rank} of {launched.size}, rank 0 at {launched.address}:{launched.port}"


def _hide_secret(setting: str) -> str:
    """Hide the world's secret."""
    name, _, value = setting.partition("=")
    return f"{name}=(hidden)" if name == "COLLSHIM_SECRET" and value else setting
