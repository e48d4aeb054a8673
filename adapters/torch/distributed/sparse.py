"""all_reduce of sparse COO tensors: the sum, as torch 2.13.0 offers it over gloo."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.communicator import Communicator
from collshim.errors import MismatchError
from collshim.together import Together
from collshim.work import Work


def sum_sparse(comm: Communicator, tensor: Tensor, reduce_op: Any) -> Work[Any]:
    """Sum all ranks' ``tensor`` in place, coalesced; the ranks may have different non-zero elements."""
    if reduce_op != "sum":
        refuse(RuntimeError, f"all_reduce: op is {reduce_op}, should be sum for sparse tensors: unsupported reduction")
    own = tensor.detach().coalesce()
    shapes = comm.all_gather(torch.tensor([own.sparse_dim(), *own.shape]))
    parts = [comm.all_gather_ragged(own.indices()), comm.all_gather_ragged(own.values())]

    def settle(results: list[Any]) -> Tensor:
        sizes, indices, values = results
        if any(not torch.equal(size, sizes[comm.rank]) for size in sizes):
            raise MismatchError(
                f"all_reduce: the sparse tensors' shapes differ: {[size[1:].tolist() for size in sizes]}"
            )
        total = torch.sparse_coo_tensor(torch.cat(indices, 1), torch.cat(values), own.shape, check_invariants=False)
        with torch.no_grad():
            return tensor.copy_(total.coalesce())  # a detached tensor would have separate elements

    return Together([shapes, *parts]).then(settle)
