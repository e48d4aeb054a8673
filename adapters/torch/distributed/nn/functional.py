"""``torch.distributed.nn.functional`` over collshim: collectives that return their result and are differentiable.

Names, signatures, results and FutureWarnings are those of torch 2.13.0. Gradients are the engine's: the derivative of
the sum of all ranks' losses (``docs/gradients.md``), for every floating and complex dtype, of every order. They differ
from torch's gradients for AVG in ``reduce`` and ``reduce_scatter`` (in torch, ``n`` times as large), for MIN, MAX and
PRODUCT (in torch, the gradient of a SUM, or the gradients reduced with the same op), and for ``_all_gather_base`` over
gloo (in torch, an error). The gradient of data that is sent only to a root is only the root's gradient. Every rank of
the group takes part in a backward pass. A rank without a result returns a placeholder (a copy of its own tensor in
``reduce``, zeros in ``gather``), through which its backward takes part. ``group=None`` is the calling rank's default
group at the time of the call; in torch it is the default group at the time of the module's import.
"""

from __future__ import annotations

from typing import Any

from torch.distributed import ReduceOp

from collshim.torch.distributed.groups import group
from collshim.torch.distributed.nn.exchanges import _all_gather_base, all_gather, all_to_all, all_to_all_single
from collshim.torch.distributed.nn.reductions import all_reduce, reduce_scatter
from collshim.torch.distributed.nn.rooted import broadcast, gather, reduce, scatter

__all__ = [
    "ReduceOp",
    "_all_gather_base",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "group",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def __getattr__(name: str) -> Any:
    from torch.distributed.nn import functional  # imported late: it keeps the default group that exists at its import

    return getattr(functional, name)
