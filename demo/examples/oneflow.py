"""OneFlow's reference manual, ``oneflow.comm.all_gather_into_tensor``: two ranks, two forms of output."""

from __future__ import annotations

import collshim.oneflow as flow
from collshim.demo.example import Example, Names, Sheet

INPUT = "tensor_in = flow.tensor([[1, 2, 3], [4, 5, 6]], dtype=flow.int64) + flow.env.get_rank() * 6\n"


def start() -> Names:
    """Return the name that ``import collshim.oneflow as flow`` binds; OneFlow needs no initialization."""
    return {"flow": flow}


SHEETS = (
    Sheet(
        framework="OneFlow",
        title="oneflow.comm.all_gather_into_tensor",
        setting="worlds of two ranks: 0 and 1 are shown, 2 and 3 must agree",
        ranks=2,
        start=start,
        examples=(
            Example(
                name="output in concatenation form",
                before=INPUT + "tensor_out = flow.zeros(4, 3, dtype=flow.int64)",
                given="tensor_in",
                call="flow.comm.all_gather_into_tensor(tensor_out, tensor_in)",
                fills="tensor_out",
            ),
            Example(
                name="output in stack form",
                before=INPUT + "tensor_out2 = flow.zeros(2, 3, 2, dtype=flow.int64)",
                given="tensor_in",
                call="flow.comm.all_gather_into_tensor(tensor_out2, tensor_in)",
                fills="tensor_out2",
            ),
        ),
    ),
)
