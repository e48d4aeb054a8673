"""``torch.distributed.nn.functional`` over collshim: collectives that return their result and are differentiable.

Names, signatures, results and FutureWarnings are those of torch 2.13.0. Gradients are the engine's: the derivative of
the sum of all ranks' losses (``docs/gradients.md``), for every floating and complex dtype, of every order.
Where torch's are another: AVG in ``reduce`` and ``reduce_scatter`` (torch: ``n`` times as large), MIN, MAX and PRODUCT
(torch: those of a SUM, or the gradients reduced by the same op), ``_all_gather_base`` over gloo (torch: an error). What
goes only to a root has the root's gradient alone.

Every rank of the group joins a backward. A rank that gets no result holds tensors without meaning (a copy of its own
in ``reduce``, zeros in ``gather``), through which its backward joins. ``group=None`` is the default group of the rank
that calls; torch takes the one that was there when the module was imported.
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
    from torch.distributed.nn import functional  # only then: it keeps the default group that is there by then

    return getattr(functional, name)
