"""Processes that join a world: each rank exists once, and all have the same size and run the same releases."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.ports import free_port
from tests.robustness.scripts import Ended, Script, await_ends, scripts

WORKS = """
import torch, collshim
{before}
comm = collshim.current().communicator
for step in range(5):
    comm.all_reduce(torch.ones(8)).wait()
print("done", flush=True)
"""
ENDS_AT_ONCE = """
import os, collshim.joining
real = collshim.joining._checks
collshim.joining._checks = lambda shared: os._exit(0)  # it has claimed its rank, and ends before it meets the others
collshim.current()
"""
Place = tuple[int, int]
"""A rank and its size of the world."""


def _rank(source: str, rank: int, size: int, port: int) -> Script:
    return Script(source, RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))


def _ended(places: Sequence[Place], before: Sequence[str] = ()) -> list[Ended]:
    lines, port = before or [""] * len(places), free_port()
    sources = [WORKS.format(before=line) for line in lines]
    with scripts([_rank(source, *place, port) for source, place in zip(sources, places, strict=True)]) as processes:
        return await_ends(processes)


def test_duplicate_rank_is_refused() -> None:
    """Chance decides which of the two is refused; the other one works to the end."""
    found = _ended([(0, 2), (1, 2), (1, 2)])
    assert (found[0].code, sorted(seen.code or 0 for seen in found[1:])) == (0, [0, 1]), found
    refused = next(seen for seen in found if seen.code)
    assert "WorldError: rank 1 joined twice" in refused.errors


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 3), (3, 3, 4), (2, 3, 4)], ids=str)
def test_different_sizes_are_reported_to_all(sizes: tuple[int, ...]) -> None:
    for seen in _ended(list(enumerate(sizes))):
        told = "WorldError: the ranks disagree on the size of the world: "
        assert told in seen.errors, seen
        assert all(f"rank {rank} has {size}" in seen.errors for rank, size in enumerate(sizes)), seen


@pytest.mark.parametrize("package", ["torch", "collshim"])
def test_different_releases_are_reported_to_all(package: str) -> None:
    found = _ended([(0, 2), (1, 2)], ["", f"{package}.__version__ = '0.0.1'"])
    for seen in found:
        assert f"WorldError: the ranks disagree on the version of {package}: rank 0 has " in seen.errors, seen
        assert "rank 1 has 0.0.1" in seen.errors


def test_process_replaces_one_that_ended_early() -> None:
    works, port = WORKS.format(before=""), free_port()
    with scripts([_rank(works, 0, 2, port), _rank(ENDS_AT_ONCE, 1, 2, port)]) as first:
        assert first[1].ended().code == 0
        with scripts([_rank(works, 1, 2, port)]) as later:
            assert [seen.out for seen in await_ends([first[0], *later])] == ["done\n"] * 2
