"""all_to_all."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="all_to_all",
    collectives=("all_to_all",),
    says="Every rank gives one part for each rank; rank `r` gets all ranks' `r`-th parts, in the order of the ranks.",
    examples={
        "torch": """\
parts = [torch.tensor([1, 2]) + 10 * rank, torch.tensor([3, 4]) + 10 * rank]
outs = [torch.zeros(2, dtype=torch.int64) for _ in range(size)]
dist.all_to_all(outs, parts)
""",
        "oneflow": """\
parts = [flow.tensor([1, 2]) + 10 * rank, flow.tensor([3, 4]) + 10 * rank]
outs = [flow.zeros(2, dtype=flow.int64) for _ in range(size)]
flow.comm.all_to_all(outs, parts)
""",
        "mindspore": """\
parts = [ms.Tensor([1, 2]) + 10 * rank, ms.Tensor([3, 4]) + 10 * rank]
comm_func.all_to_all_with_output_shape([(2,)] * size, parts)
""",
        "megengine": """\
x = torch.tensor([1, 2, 3, 4]) + 10 * rank
F.distributed.all_to_all(x)
""",
    },
    notes={
        "torch": (
            "Parts may be unequal; gloo refuses that, and collshim does it.",
            "`all_to_all_single(output, input, output_split_sizes, input_split_sizes)` takes one tensor each way.",
        ),
        "oneflow": (
            "The output that comes from the rank itself is one memory with its input from then on.",
            "Unlike in `all_gather` the list's tensors are written, and must be there.",
        ),
        "mindspore": (
            "The shapes of what comes are told first, and may be unequal; a tuple comes back, in a pair with the "
            "handle.",
            "`all_to_all_single_with_output_shape` takes one tensor each way.",
        ),
        "megengine": (
            "One tensor goes in and one comes back: `split_axis` gets `n` times shorter, `concat_axis` `n` times "
            "longer. Both are 0 unless said.",
        ),
    },
)
