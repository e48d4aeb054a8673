"""The list of frameworks: what collshim and its suite need to know about each.

A framework has a folder (``adapters/<name>``, the link ``collshim/<name>``) and an entry here. Another distribution
adds one through the entry point ``collshim.frameworks``, see docs/adding-a-framework.md. This module imports only the
standard library, since the list is also read under the interpreter of a real framework.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import NamedTuple

GROUP = "collshim.frameworks"


class FrameworkEntry(NamedTuple):
    """One framework.

    Attributes:
        name: its package.
        title: its name as the framework writes it.
        home: the module that a user's own implementation replaces.
        functions: the module whose name the documentation omits before functions.
        start: the code with which a program starts; it sets ``rank`` and ``size``.
        group: what a group is, how its ranks are ordered, and which ranks roots and peers are.
        collectives: the collectives that it has: "arrays" for all of arrays, "objects" for all of objects, or names.
        adapter: the prefix of a path that leads to the adapter.
        spellings: the module with its spellings for the suite; "" for the suite's own.
        options: its adapter's options, whose names begin with the framework's, each with its values, the default first;
            ``settings.of_adapter`` returns the value in force.
        patched: the release whose collectives ``collshim run --patch`` carries; "" if there is none.
        last_python: the newest Python for which there is that release.
    """

    name: str
    title: str
    home: str
    functions: str
    start: str
    group: tuple[str, str, str]
    collectives: tuple[str, ...] = ()
    adapter: str = "collshim."
    spellings: str = ""
    options: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    patched: str = ""
    last_python: tuple[int, int] = (0, 0)


FRAMEWORKS: Mapping[str, FrameworkEntry] = {
    entry.name: entry
    for entry in (
        FrameworkEntry(
            name="torch",
            title="PyTorch",
            home="torch.distributed",
            functions="torch.distributed",
            start="""\
import torch
import collshim.torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
""",
            group=(
                "an object; -100 on a rank outside",
                "sorted, unless `sort_ranks=False`",
                "global ranks; `group_src` and the like are ranks in the group",
            ),
            collectives=("arrays", "objects"),
        ),
        FrameworkEntry(
            name="oneflow",
            title="OneFlow",
            home="oneflow",
            functions="oneflow.comm",
            start="""\
import collshim.oneflow as flow

rank, size = flow.env.get_rank(), flow.env.get_world_size()
""",
            group=("the world, always", "–", "global ranks"),
            collectives=("arrays",),
            patched="0.9.0",
            last_python=(3, 10),
        ),
        FrameworkEntry(
            name="mindspore",
            title="MindSpore",
            home="mindspore",
            functions="mindspore.communication",
            start="""\
import collshim.mindspore as ms
from collshim.mindspore.communication import comm_func, get_group_size, get_rank, init

init()
rank, size = get_rank(), get_group_size()
""",
            group=("a name", "kept", "global ranks"),
            collectives=("arrays", "objects"),
            options={"mindspore_gather": ("concatenated", "stacked")},
            patched="2.10.0",
            last_python=(3, 12),
        ),
        FrameworkEntry(
            name="tensorflow",
            title="TensorFlow",
            home="tensorflow",
            functions="tensorflow.distribute",
            start="""\
import collshim.tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
replica = tf.distribute.get_replica_context
rank, size = strategy.run(lambda: replica().replica_id_in_sync_group), strategy.num_replicas_in_sync
""",
            group=("a strategy's replicas", "replica id", "–"),
            collectives=("all_gather", "all_reduce"),
        ),
        FrameworkEntry(
            name="megengine",
            title="MegEngine",
            home="megengine",
            functions="megengine.functional.distributed",
            start="""\
import torch
import collshim
import collshim.megengine.distributed as dist
import collshim.megengine.functional as F

here = collshim.current()  # a function that dist.launcher starts finds this done
dist.init_process_group("localhost", 8000, here.size, here.rank, here.rank)
rank, size = dist.get_rank(), dist.get_world_size()
""",
            group=("a `Group`", "kept; the first is the root", "group order; of send and recv: global ranks"),
            collectives=("arrays",),
            patched="1.13.0",
            last_python=(3, 10),
        ),
    )
}
"""collshim's own frameworks."""


class _Known(Mapping[str, FrameworkEntry]):
    """collshim's own entries, and those of other distributions by name, which are loaded on access."""

    def __init__(self) -> None:
        self._others = {point.name: point for point in entry_points(group=GROUP) if point.name not in FRAMEWORKS}
        self._loaded: dict[str, FrameworkEntry] = {}

    def __iter__(self) -> Iterator[str]:
        return iter((*FRAMEWORKS, *self._others))

    def __len__(self) -> int:
        return len(FRAMEWORKS) + len(self._others)

    def __contains__(self, name: object) -> bool:
        return name in FRAMEWORKS or name in self._others

    def __getitem__(self, name: str) -> FrameworkEntry:
        if name in FRAMEWORKS:
            return FRAMEWORKS[name]
        if name not in self._loaded:
            self._loaded[name] = _load(self._others[name])
        return self._loaded[name]


def _load(point: EntryPoint) -> FrameworkEntry:
    try:
        entry = point.load()
    except Exception as error:
        text = f"{point.name}: its entry {point.value} cannot be loaded: {type(error).__name__}: {error}"
        raise ImportError(text) from error
    if not isinstance(entry, FrameworkEntry):
        raise ImportError(f"{point.name}: its entry {point.value} is {entry!r}, should be a FrameworkEntry")
    return entry


@cache
def known() -> Mapping[str, FrameworkEntry]:
    """Return collshim's own entries, and those that other distributions add.

    Raises:
        ImportError: on access: the entry of another distribution cannot be loaded, or is not a FrameworkEntry.
    """
    return _Known()
