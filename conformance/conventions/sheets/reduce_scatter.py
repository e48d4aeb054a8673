"""reduce_scatter."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="reduce_scatter",
    collectives=("reduce_scatter",),
    says="Every rank gives one part for each rank; rank `r` gets the sum, largest, ... of all ranks' `r`-th parts.",
    examples={
        "torch": """\
parts = [torch.tensor([1, 2]) + 10 * rank, torch.tensor([3, 4]) + 10 * rank]
out = torch.zeros(2, dtype=torch.int64)
dist.reduce_scatter(out, parts)
""",
        "oneflow": """\
parts = [flow.tensor([1, 2]) + 10 * rank, flow.tensor([3, 4]) + 10 * rank]
out = flow.zeros(2, dtype=flow.int64)
flow.comm.reduce_scatter(out, parts)
""",
        "mindspore": """\
x = ms.Tensor([1, 2, 3, 4]) + 10 * rank
comm_func.reduce_scatter_tensor(x)
""",
        "megengine": """\
x = torch.tensor([1, 2, 3, 4]) + 10 * rank
F.distributed.reduce_scatter_sum(x)
""",
    },
    notes={
        "torch": (
            "Parts may be unequal in length, as long as all ranks' `r`-th parts are alike.",
            "`reduce_scatter_single(output, input)` takes one tensor; until torch 2.12 it was `reduce_scatter_tensor`.",
        ),
        "oneflow": (
            "`output` is given other memory: a tensor that it was a view of keeps its values.",
            "`reduce_scatter_tensor` takes any shapes whose numbers of elements fit.",
        ),
        "mindspore": ("One tensor goes in, cut along axis 0; its length must be a multiple of the number of ranks.",),
        "megengine": ("One tensor goes in, cut along `axis`, which is counted from the front.",),
    },
)
