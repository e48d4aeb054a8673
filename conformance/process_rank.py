"""The main program of a rank that is a process: ``python -m collshim.conformance.process_rank FD PREFIX``.

FD is its end of a pipe to the process that asks. Which rank it is it reads from its environment, as collshim
does.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from collshim import world
from collshim.conformance.bindings.places import Place
from collshim.conformance.ranks import ENGINE_SECONDS, Request, serve


def main(fd: int, prefix: str) -> None:
    """Join the world, answer until told to end or the asking process is gone, and leave the world."""
    here = world.current()
    here.communicator.timeout = ENGINE_SECONDS
    place = Place(here.rank, here.size, prefix, os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    with Connection(fd) as pipe:

        def receive() -> Request:
            request: Request = pipe.recv()
            return request

        with suppress(EOFError, ConnectionResetError, BrokenPipeError):  # nobody asks any more
            serve(place, receive, pipe.send)
    world.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
