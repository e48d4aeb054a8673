"""megatron-core's tensor parallelism: its groups, its mappings with their gradients, and its cross entropy."""

from __future__ import annotations

from collections.abc import Callable

import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.tensor_parallel import mappings
from torch import Tensor

from tests.upstream.programs.ranks import run, show

# Its mappings allocate on the current CUDA device, whatever their input's device is.
torch.cuda.current_device = lambda: torch.device("cpu")  # type: ignore[assignment,return-value]

MAPPINGS: list[Callable[[Tensor], Tensor]] = [
    mappings.copy_to_tensor_model_parallel_region,
    mappings.reduce_from_tensor_model_parallel_region,
    mappings.scatter_to_tensor_model_parallel_region,
    mappings.gather_from_tensor_model_parallel_region,
    mappings.scatter_to_sequence_parallel_region,
    mappings.gather_from_sequence_parallel_region,
    mappings.reduce_scatter_to_sequence_parallel_region,
    mappings.all_gather_last_dim_from_tensor_parallel_region,
    mappings.reduce_scatter_last_dim_to_tensor_parallel_region,
    mappings.all_to_all_sp2hp,
    mappings.all_to_all_hp2sp,
]


def main(rank: int, size: int, *with_gloo: str) -> None:
    """Make the groups, and call each mapping."""
    parallel_state.initialize_model_parallel(size, create_gloo_process_groups=bool(with_gloo))
    assert parallel_state.get_tensor_model_parallel_world_size() == size
    found: dict[str, object] = {}
    for mapping in MAPPINGS:
        own = (torch.arange(4.0 * size * size).reshape(2 * size, 2 * size) + 100 * rank).requires_grad_()
        result = mapping(own)
        result.square().sum().backward()
        assert own.grad is not None
        found[mapping.__name__] = [list(result.shape), float(result.sum()), float(own.grad.sum())]
    logits = torch.arange(2.0 * 3 * 4).reshape(2, 3, 4).sin() + rank
    loss = tensor_parallel.vocab_parallel_cross_entropy(logits.requires_grad_(), torch.tensor([[0, 1, 2], [4, 5, 7]]))
    loss.sum().backward()
    show(rank, **found, loss=loss.detach(), gradient=logits.grad)
    parallel_state.destroy_model_parallel()


if __name__ == "__main__":
    run(main)
