"""The main program of a rank that is a process. It reads its rank from its environment, as collshim does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection

import torch

from collshim import world
from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.ranks import ENGINE_SECONDS, Serve

bindings()  # loaded with this module, for the processes forked later


def main(pipe: Connection, prefix: str, environment: Mapping[str, str], serve: Serve) -> None:
    """Join the world, answer until asked to end or until the asking process is gone, and leave the world."""
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    here = world.current()
    here.communicator.timeout = ENGINE_SECONDS
    place = RankContext(here.rank, here.size, prefix, os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    with pipe, suppress(EOFError, ConnectionResetError, BrokenPipeError):  # the asking process is gone
        serve(place, pipe.recv, pipe.send)
    world.close()
