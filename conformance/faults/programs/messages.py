"""Programs whose sends and receives do not match."""

from __future__ import annotations

import os
import signal
from typing import Any

import torch


def dead_sender(dist: Any) -> None:
    """dead rank: rank 0 is killed before it sends the message that rank 1 waits for.

    blame: 0
    dead: 0
    affected: 1
    on: processes torch torch+detail
    """
    if dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if dist.get_rank() == 1:
        dist.recv(torch.empty(4), src=0)  # <- here


def dead_sender_twin(dist: Any) -> None:
    """The sender lives."""
    got = torch.empty(4)
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), dst=1)
    if dist.get_rank() == 1:
        dist.recv(got, src=0)
        assert got.tolist() == [1.0] * 4


def dtype_recv(dist: Any) -> None:
    """dtype: rank 1 receives as int32 what rank 0 sends as float32.

    blame: 1
    affected: 1
    twin: dead_sender_twin
    """
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), dst=1)
    if dist.get_rank() == 1:
        dist.recv(torch.empty(4, dtype=torch.int32), src=0)  # <- here


def recv_nowhere(dist: Any) -> None:
    """send to a rank that does not exist: rank 0 receives from rank 3 of 3, its neighbour in a ring.

    blame: 0
    """
    rank = dist.get_rank()
    neighbour = rank + 3 if rank == 0 else rank - 1  # rank 3 does not exist; the others wait at the barrier
    work = dist.isend(torch.ones(4), dst=(rank + 1) % 3)
    dist.recv(torch.empty(4), src=neighbour)  # <- here
    work.wait()
    dist.barrier()


def recv_nowhere_twin(dist: Any) -> None:
    """A closed ring."""
    rank = dist.get_rank()
    got = torch.empty(4)
    work = dist.isend(torch.full((4,), float(rank)), dst=(rank + 1) % 3)
    dist.recv(got, src=(rank - 1) % 3)
    work.wait()
    dist.barrier()
    assert got.tolist() == [float((rank - 1) % 3)] * 4


def recv_small(dist: Any) -> None:
    """recv buffer too small: rank 1 has room for 4 of the 6 elements that rank 0 sends.

    blame: 1
    affected: 1
    """
    if dist.get_rank() == 0:
        dist.send(torch.ones(6), dst=1)
    if dist.get_rank() == 1:  # the rest would be written past the buffer
        dist.recv(torch.empty(4), src=0)  # <- here


def recv_small_twin(dist: Any) -> None:
    """Room for all."""
    got = torch.empty(6)
    if dist.get_rank() == 0:
        dist.send(torch.ones(6), dst=1)
    if dist.get_rank() == 1:
        dist.recv(got, src=0)
        assert got.tolist() == [1.0] * 6


def recv_small_large(dist: Any) -> None:
    """recv buffer too small: rank 2 has room for half of the megabyte that rank 0 sends.

    blame: 2
    affected: 2
    """
    if dist.get_rank() == 0:
        dist.isend(torch.ones(1 << 18), dst=2).wait()
    if dist.get_rank() == 2:  # the rest would be written past the buffer
        dist.irecv(torch.empty(1 << 17), src=0).wait()  # <- here


def recv_small_large_twin(dist: Any) -> None:
    """Room for all."""
    got = torch.empty(1 << 18)
    if dist.get_rank() == 0:
        dist.isend(torch.ones(1 << 18), dst=2).wait()
    if dist.get_rank() == 2:
        dist.irecv(got, src=0).wait()
        assert got.eq(1.0).all()


def send_nowhere(dist: Any) -> None:
    """send to a rank that does not exist: rank 1 sends to rank 7 of 3 the message that rank 2 waits for.

    blame: 1
    affected: 1 2
    """
    if dist.get_rank() == 1:
        dist.send(torch.ones(4), dst=7)  # <- here
    if dist.get_rank() == 2:
        dist.recv(torch.empty(4), src=1)


def send_nowhere_twin(dist: Any) -> None:
    """The receiver exists."""
    got = torch.empty(4)
    if dist.get_rank() == 1:
        dist.send(torch.ones(4), dst=2)
    if dist.get_rank() == 2:
        dist.recv(got, src=1)
        assert got.tolist() == [1.0] * 4
