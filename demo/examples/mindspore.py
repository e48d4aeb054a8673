"""MindSpore's manual on how ``comm_func.all_gather_into_tensor`` differs from torch's ``all_gather``: two ranks."""

from __future__ import annotations

import collshim
from collshim.demo.example import Example, Names, Sheet
from collshim.mindspore import Tensor, communication
from collshim.mindspore.communication import comm_func

INPUT = "tensor = Tensor([[1, 2, 3], [4, 5, 6]]) + get_rank() * 6"
CALL = "output, handle = comm_func.all_gather_into_tensor(tensor)"
ASYNC = "output, handle = comm_func.all_gather_into_tensor(tensor, async_op=True)"
STACKED = 'with collshim.options(mindspore_gather="stacked"):\n    '


def start() -> Names:
    """Return the names that a script has after its imports and ``init``."""
    communication.init()
    return {"collshim": collshim, "comm_func": comm_func, "Tensor": Tensor, "get_rank": communication.get_rank}


def _gather(name: str, call: str, after: str = "") -> Example:
    return Example(name, call, INPUT, after, given="tensor", back="(output, handle)", holds="output")


SHEETS = (
    Sheet(
        framework="MindSpore",
        title="mindspore.communication.comm_func.all_gather_into_tensor",
        setting="worlds of two ranks: 0 and 1 are shown, 2 and 3 must agree",
        ranks=2,
        start=start,
        examples=(
            _gather("synchronous", CALL),
            _gather("asynchronous", ASYNC, after="handle.wait()"),
            _gather("stacked, as documented", STACKED + CALL),
        ),
    ),
)
