"""The collectives of Python objects."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="objects",
    title="collectives of objects",
    collectives=("all_gather_object", "gather_object", "broadcast_object", "scatter_object", "ring_object"),
    says="Python objects that can be pickled, in place of tensors. Lists are filled in place.",
    examples={
        "torch": """\
outs = [None] * size
dist.all_gather_object(outs, {"rank": rank})
""",
        "mindspore": """\
from collshim.mindspore.mint import distributed

outs = [None] * size
distributed.all_gather_object(outs, {"rank": rank})
""",
    },
    notes={
        "torch": (
            "Objects are pickled: take them from ranks alone that you trust as you trust your own program.",
            "`send_object_list` and `recv_object_list` move a list; `recv_object_list` returns the sender's rank.",
        ),
        "mindspore": ("They are in `mint.distributed`; its `recv_object_list` returns 0.",),
    },
)
