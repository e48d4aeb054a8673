"""torch's own functions that make groups: while torch has a stand-in, they make collshim's groups, for libraries.

The program's own code imports ``collshim.torch.distributed``, but a library such as accelerate keeps torch's own module
and may make the default group itself. While torch has a stand-in, torch's ``init_process_group`` and ``new_group`` make
groups of collshim if the backend is gloo, NCCL or not named. ``get_backend`` returns the name that was passed, because
libraries depend on it: ignite does not wrap a model for a backend that it does not know. ``_set_pg_timeout``, which
takes only groups with a backend in C++, sets the timeout of collshim's groups too.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch.distributed

from collshim.torch.distributed import lifecycle
from collshim.torch.distributed.backends import normalize_backend
from collshim.torch.distributed.c10d.backend import NAME
from collshim.torch.distributed.c10d.group import CollectiveGroup

_OWN = {"gloo", "nccl"}
"""The names of the backends that collshim replaces."""


def replace() -> Callable[[], None]:
    """Replace the functions in every module that has them; return a function that restores them."""
    makes, adds, asks = torch.distributed.init_process_group, torch.distributed.new_group, torch.distributed.get_backend

    @functools.wraps(makes)
    def init_process_group(backend: str | None = None, *arguments: Any, **more: Any) -> None:
        make = lifecycle.init_process_group if _is_own(backend) else makes
        make(backend, *arguments, **more)

    @functools.wraps(adds)
    def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, *arguments: Any, **more: Any) -> Any:
        whole = torch.distributed.group.WORLD
        if backend is None or not (_is_own(backend) and isinstance(whole, CollectiveGroup)):
            return adds(ranks, timeout, backend, *arguments, **more)
        name = normalize_backend(backend)  # refuses NCCL if torch was built without it
        group = adds(ranks, timeout, NAME, *arguments, **more)
        if isinstance(group, CollectiveGroup):
            group.backend = name
        return group

    @functools.wraps(asks)
    def get_backend(group: Any = None) -> str:
        name = asks(group)
        return name if name != NAME else _name_passed(group) or name

    functions: list[tuple[Any, Any]] = [(makes, init_process_group), (adds, new_group), (asks, get_backend)]
    sets = getattr(torch.distributed.distributed_c10d, "_set_pg_timeout", None)
    functions += [] if sets is None else [(sets, _for_all_groups(sets))]
    _exchange(functions)
    return partial(_exchange, [(other, own) for own, other in functions])


def _for_all_groups(sets: Callable[..., None]) -> Callable[..., None]:
    """Return torch's function that sets a group's timeout, for groups of collshim too."""

    @functools.wraps(sets)
    def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
        chosen = torch.distributed.group.WORLD if group is None else group
        if isinstance(chosen, CollectiveGroup):
            chosen.set_timeout(timeout)
        else:
            sets(timeout, group)

    return _set_pg_timeout


def _name_passed(group: Any) -> str | None:
    """Return the name of the backend that the program passed for a group of collshim, or for the default group."""
    for one in (group, torch.distributed.group.WORLD):
        if isinstance(one, CollectiveGroup) and one.backend != NAME:
            return one.backend
    return None


def _is_own(backend: str | None) -> bool:
    """Return whether collshim replaces all backends in a name such as "cpu:gloo,cuda:nccl", or None."""
    names = [] if backend is None else [part.rpartition(":")[2] for part in str(backend).lower().split(",")]
    return _OWN.issuperset(names)


def _exchange(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Put the second function of each pair into all modules that have the first, under its own name."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for present, other in pairs:
            name = present.__name__
            if names.get(name) is present:
                setattr(module, name, other)
