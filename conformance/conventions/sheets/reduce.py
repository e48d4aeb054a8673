"""reduce."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="reduce",
    collectives=("reduce",),
    says="Every rank gives a tensor; one rank, the root, gets the sum of all, or their largest, smallest and so on.",
    examples={
        "torch": """\
x = torch.tensor([1, 2]) + 10 * rank
dist.reduce(x, 0)
""",
        "oneflow": """\
x = flow.tensor([1, 2]) + 10 * rank
flow.comm.reduce(x, 0)
""",
        "mindspore": """\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.reduce(x, 0)
""",
        "megengine": """\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.reduce_sum(x)
""",
    },
    notes={
        "torch": ("Over gloo the tensors off the root hold partial sums afterwards; do not read them in either.",),
        "oneflow": ("It always sums.",),
        "mindspore": (
            "The output comes back alone, not in a pair.",
            "Off the root it is one element without meaning: keep it out of what follows.",
        ),
        "megengine": ("To reduce to another rank, give a group that begins with it: `dist.new_group([1, 0])`.",),
    },
)
