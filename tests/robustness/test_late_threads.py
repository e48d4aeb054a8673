"""The end of a process whose threads are in torch's C++: the exit status is the program's."""

from __future__ import annotations

import pytest

from tests.robustness.scripts import await_ends, ranks
from tests.shared_memory.repeats import NEEDS_CORE

pytestmark = [pytest.mark.processes, NEEDS_CORE]

THREADS_IN_CPP = """
import contextlib, datetime, sys, threading, time
import collshim.torch.distributed as dist
from torch.distributed import TCPStore

def wait_again_and_again():
    while True:
        with contextlib.suppress(Exception):
            store.wait(["missing"], datetime.timedelta(milliseconds=10))

dist.init_process_group("gloo")
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
for _ in range(4):
    threading.Thread(target=wait_again_and_again, daemon=True).start()
time.sleep(0.1)
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("status", [0, 3])
def test_threads_that_come_back_at_the_end_do_not_abort_the_process(status: int) -> None:
    with ranks(THREADS_IN_CPP, 2, status) as started:
        assert [end.code for end in await_ends(started)] == [status, status]
