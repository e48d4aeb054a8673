"""Which of several ranks' failures ``launch`` names."""

from __future__ import annotations

import threading
import time

import pytest

import collshim

pytestmark = pytest.mark.threads


def test_rank_whose_failure_ended_the_group_is_named() -> None:
    has_failed = threading.Event()

    def program() -> None:
        comm = collshim.current().communicator
        if comm.rank == 0:
            try:
                comm.barrier().wait()
            finally:
                has_failed.set()
                time.sleep(0.1)  # the other rank fails meanwhile
        if comm.rank == 2:
            assert has_failed.wait(20)
            comm.barrier().wait()

    with pytest.raises(collshim.RankError, match="rank 1 has returned from its function") as caught:
        collshim.launch(program, 3)
    assert caught.value.rank == 0
