"""gather."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="gather",
    collectives=("gather",),
    says="Every rank gives a tensor; one rank, the root, gets all of them, in the order of the ranks.",
    examples={
        "torch": """\
x = torch.tensor([1, 2]) + 10 * rank
outs = [torch.zeros(2, dtype=torch.int64) for _ in range(size)] if rank == 0 else None
dist.gather(x, outs, 0)
""",
        "oneflow": """\
x = flow.tensor([1, 2]) + 10 * rank
outs = [None] * size
flow.comm.gather(x, outs, 0)
""",
        "mindspore": """\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.gather_into_tensor(x, 0)
""",
        "megengine": """\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.gather(x)
""",
    },
    notes={
        "torch": ("The list stands after the tensor, and is None off the root: torch refuses one there.",),
        "oneflow": (
            "**Every rank that gives a list gets all tensors**, whatever `dst` says: it is an all_gather. A program "
            "that tells the root by its filled list breaks.",
            "The entries of the list are replaced, as by `all_gather`.",
        ),
        "mindspore": (
            "The output comes back alone, not in a pair, concatenated along axis 0.",
            "Off the root it is one element without meaning.",
        ),
        "megengine": ("The tensors are joined along `axis`, on the group's first rank; the others get None.",),
    },
)
