"""broadcast."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="broadcast",
    collectives=("broadcast",),
    says="One rank, the root, gives a tensor; every rank gets it.",
    examples={
        "torch": """\
x = torch.tensor([1, 2]) + 10 * rank
dist.broadcast(x, 0)
""",
        "oneflow": """\
x = flow.tensor([1, 2]) + 10 * rank
flow.comm.broadcast(x, 0)
""",
        "mindspore": """\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.broadcast(x, 0)
""",
        "megengine": """\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.broadcast(x)
""",
    },
    notes={
        "torch": ("`src` is a global rank, in a group too; `group_src` is a rank in the group.",),
        "oneflow": ("`src` has no default.",),
        "mindspore": (
            "The output comes back alone, not in a pair.",
            "The gradient is MindSpore's own rule: each rank's input gets the gradient of that rank's output, so that "
            "the root's is not the sum over the ranks.",
        ),
        "megengine": (
            "Ranks other than the root may give None.",
            "To broadcast from another rank, give a group that begins with it.",
        ),
    },
)
