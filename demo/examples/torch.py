"""PyTorch's reference manual, ``torch.distributed.all_to_all`` and ``all_gather``, on four ranks."""

from __future__ import annotations

import torch

import collshim.torch.distributed as dist
from collshim.demo.example import Example, Names, Sheet

ONE_EACH = """
input = list((torch.arange(4) + rank * 4).chunk(4))
output = list(torch.empty([4], dtype=torch.int64).chunk(4))
"""

UNEVEN = """
lengths = [6, 9, 5, 7]
splits = [[2, 2, 1, 1], [3, 2, 2, 2], [2, 1, 1, 1], [2, 2, 2, 1]]
input = list((torch.arange(lengths[rank]) + rank * 10).split(splits[rank]))
output = [torch.empty([splits[source][rank]], dtype=torch.int64) for source in range(4)]
"""

COMPLEX = """
input = torch.tensor([1 + 1j, 2 + 2j, 3 + 3j, 4 + 4j], dtype=torch.cfloat) + 4 * rank * (1 + 1j)
input = list(input.chunk(4))
output = list(torch.empty([4], dtype=torch.cfloat).chunk(4))
"""

GATHER = """
tensor = torch.arange(2, dtype=torch.int64) + 1 + 2 * rank
tensor_list = [torch.zeros(2, dtype=torch.int64) for _ in range(4)]
"""


def start() -> Names:
    """Return the names that a script has after its imports, ``init_process_group`` and ``get_rank``."""
    dist.init_process_group("gloo")
    return {"torch": torch, "dist": dist, "rank": dist.get_rank()}


SHEETS = (
    Sheet(
        framework="PyTorch",
        title="torch.distributed.all_to_all, all_gather",
        setting="a world of four ranks",
        ranks=4,
        start=start,
        examples=(
            Example(
                name="one element for each rank",
                before=ONE_EACH,
                call="dist.all_to_all(output, input)",
                fills="output",
            ),
            Example(
                name="parts of unequal lengths",
                before=UNEVEN,
                call="dist.all_to_all(output, input)",
                fills="output",
            ),
            Example(
                name="complex numbers",
                before=COMPLEX,
                call="dist.all_to_all(output, input)",
                fills="output",
            ),
            Example(
                name="asynchronous",
                before=ONE_EACH,
                call="work = dist.all_to_all(output, input, async_op=True)",
                after="work.wait()",
                back="work",
                fills="output",
            ),
            Example(
                name="all_gather",
                before=GATHER,
                given="tensor",
                call="dist.all_gather(tensor_list, tensor)",
                fills="tensor_list",
            ),
            Example(
                name="all_gather, asynchronous",
                before=GATHER,
                given="tensor",
                call="work = dist.all_gather(tensor_list, tensor, async_op=True)",
                after="work.wait()",
                back="work",
                fills="tensor_list",
            ),
        ),
    ),
)
