"""scatter."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="scatter",
    collectives=("scatter",),
    says="One rank, the root, gives one part for each rank; rank `r` gets the `r`-th.",
    examples={
        "torch": """\
parts = [torch.tensor([1, 2]), torch.tensor([3, 4])] if rank == 0 else None
out = torch.zeros(2, dtype=torch.int64)
dist.scatter(out, parts, 0)
""",
        "oneflow": """\
parts = [flow.tensor([1, 2]), flow.tensor([3, 4])] if rank == 0 else None
out = flow.zeros(2, dtype=flow.int64)
flow.comm.scatter(out, parts, 0)
""",
        "mindspore": """\
x = ms.Tensor([1, 2, 3, 4]) + 10 * rank
comm_func.scatter_tensor(x, 0)
""",
        "megengine": """\
x = torch.tensor([1, 2, 3, 4]) + 10 * rank
F.distributed.scatter(x)
""",
    },
    notes={
        "torch": ("Off the root the list is None: torch refuses one there.",),
        "oneflow": (
            "On the root the output is one memory with its part of the list from then on: a change of one is a change "
            "of the other.",
            "Other ranks may give a list, which is not read.",
        ),
        "mindspore": (
            "One tensor goes in, cut along axis 0, and every rank gives one: its shape is read there too.",
            "The output comes back alone, not in a pair.",
        ),
        "megengine": ("One tensor goes in, cut along `axis`; ranks other than the root may give None.",),
    },
)
