"""Which rank this process is, from what its launcher says: torchrun's and OneFlow's variables, or a single rank."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from collshim.errors import WorldError

_FOUR = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")


class Place(NamedTuple):
    """A rank's place among the processes of its world.

    ``agent_store`` tells that the launcher serves the store at that port, as torch's elastic agent does.
    """

    rank: int
    size: int
    address: str
    port: int
    local_rank: int
    local_size: int
    agent_store: bool = False


def read(
    rank: int | None,
    size: int | None,
    address: str | None,
    port: int | None,
    *,
    needs_address: bool,
    environment: Mapping[str, str] = os.environ,
) -> Place:
    """What is given, completed by the environment; a single rank where nothing says otherwise.

    Raises:
        WorldError: half an environment, a value that is no number, a rank outside the world, or two sources that
            contradict each other, both shown.
    """
    _refuse_contradiction("rank", rank, "RANK", environment)
    _refuse_contradiction("size", size, "WORLD_SIZE", environment)
    if rank is None and size is None and not any(name in environment for name in ("RANK", "WORLD_SIZE")):
        return Place(0, 1, "", 0, 0, 1)
    found_rank = _number("RANK", environment) if rank is None else rank
    found_size = _number("WORLD_SIZE", environment) if size is None else size
    if not 0 <= found_rank < found_size:
        raise WorldError(f"rank is {found_rank}, should be from 0 to {found_size - 1} in a world of {found_size}")
    return _placed(found_rank, found_size, address, port, needs_address and found_size > 1, environment)


def _placed(
    rank: int, size: int, address: str | None, port: int | None, needs_address: bool, environment: Mapping[str, str]
) -> Place:
    host = address if address is not None else environment.get("MASTER_ADDR", "")
    number = port
    if number is None:
        number = _number("MASTER_PORT", environment) if needs_address or "MASTER_PORT" in environment else 0
    if needs_address and not host:
        raise WorldError(f"MASTER_ADDR is not set, should be the host of rank 0 (rank {rank} of {size})")
    local_rank = _number("LOCAL_RANK", environment) if "LOCAL_RANK" in environment else rank
    local_size = _number("LOCAL_WORLD_SIZE", environment) if "LOCAL_WORLD_SIZE" in environment else size
    agent = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return Place(rank, size, host, number, local_rank, local_size, agent)


def _refuse_contradiction(what: str, given: int | None, name: str, environment: Mapping[str, str]) -> None:
    if given is not None and name in environment and _number(name, environment) != given:
        raise WorldError(f"{what} is {given} as an argument and {environment[name]} in {name}, should be the same")


def _number(name: str, environment: Mapping[str, str]) -> int:
    if name not in environment:
        there = ", ".join(known for known in _FOUR if known in environment) or "none"
        raise WorldError(f"{name} is not set, should be a number; of {', '.join(_FOUR)} there are: {there}")
    try:
        return int(environment[name])
    except ValueError as error:
        raise WorldError(f"{name} is {environment[name]!r}, should be a number") from error
