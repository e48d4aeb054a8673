"""The page docs/torch-group.md: every method of torch's groups, and what a group of collshim's does."""

from __future__ import annotations

from collections.abc import Mapping

from collshim.torch.distributed.c10d.torch_group import REFUSED

HEAD = """# A group, method by method

`init_process_group("collshim")` and `collshim.torch.distributed` make groups that torch's own modules accept: each is a
`torch.distributed.ProcessGroup`, and its own backend for every device. This table has every method and attribute of
`ProcessGroup`, `Backend`, `ProcessGroupGloo` and `ProcessGroupNCCL` of torch 2.13 and 2.15. It compares collshim's
group with gloo's, or with NCCL's if gloo lacks the name. A test keeps the table complete.

| name | collshim's group | how it differs, or what to do instead |
| --- | --- | --- |
"""

SAME = "same"
DIFFERENT = "different"

_COLLECTIVES = (
    "_allgather_base _reduce_scatter_base all_gather_single all_gather_single_coalesced all_to_all_single allgather "
    "allgather_coalesced allgather_into_tensor_coalesced allreduce_coalesced alltoall alltoall_base barrier broadcast "
    "gather gather_into_tensor gather_single monitored_barrier recv recv_anysource reduce_scatter "
    "reduce_scatter_single reduce_scatter_single_coalesced reduce_scatter_tensor_coalesced scatter send"
)
_IDENTITY = (
    "_device_types _get_backend _has_hooks _id _register_backend _set_default_backend _set_default_timeout "
    "_set_group_desc _set_group_name _start_coalescing _end_coalescing bound_device_id get_backend group_desc "
    "group_name rank set_timeout shutdown size unbox supports_shrinking supports_tensor_alloc supports_time_estimate "
    "_supports_time_estimate supports_reconfigure supports_window unregister_post_hook unregister_pre_hook"
)

DIFFERENCES: Mapping[str, str] = {
    "_backend_id": "the group is its own backend, so torch has no number for it",
    "_comm_ptr": "absent: the engine owns NCCL's communicator",
    "_enable_collectives_timing": "does nothing, as with gloo; `torch.profiler` shows each call",
    "_end_time_estimate": "absent, as `supports_time_estimate` says",
    "_get_backend_name": '"collshim", whichever name the group was made with',
    "_get_sequence_number_for_group": "counts every posted call; gloo also counts some internal calls",
    "_group_end": "absent: use `_coalescing_manager`",
    "_group_start": "absent: use `_coalescing_manager`",
    "_is_initialized": "absent: NCCL connects the ranks at the first call",
    "_set_enable_nan_check": "absent: use `collshim.options(find_nan=True)`, which names the rank",
    "_set_group_uid": "absent: the group's name is its identity",
    "_set_sequence_number_for_group": "does nothing: the engine counts from the start",
    "_start_time_estimate": "absent, as `supports_time_estimate` says",
    "_wait_for_pending_works": "waits for all collectives that no wait has ended for; gloo refuses",
    "abort": "the same as `shutdown`",
    "allreduce": "several tensors of a rank are reduced together, as by gloo; AVG divides all, and gloo only the first",
    "allreduce_sparse": "`allreduce`, which takes sparse tensors",
    "boxed": "from the first use on, `torch.ops.c10d` takes the group",
    "comm_ptr": "absent: the engine owns NCCL's communicator",
    "comm_split_count": "absent: no communicator is split",
    "create_default_device": "absent: the engine chooses the interface",
    "create_device": "absent: the engine chooses the interface",
    "deregister_mem_pool": "absent: see `register_mem_pool`",
    "eager_connect_single_device": "does nothing: NCCL connects the ranks at the first call",
    "get_build_nccl_version": "absent: use `torch.cuda.nccl.version()`",
    "get_error": "absent: a failure is raised by the call, or by the next one",
    "get_group_store": "the group's part of the store; None after a split",
    "get_runtime_nccl_version": "absent: use `torch.cuda.nccl.version()`",
    "mem_allocator": "refused, as by gloo",
    "name": "the name that the group was made with, so that scripts which compare it run",
    "options": "NCCL's options if any were passed, else a `Backend.Options` with the timeout",
    "perform_nocolor_split": "absent: no communicator is split",
    "reduce": "tensors of ranks other than the root do not change; gloo leaves partial sums in them",
    "register_post_hook": "some calls run no hooks: see [torch 2.15's hooks](torch.md#torch-215s-hooks)",
    "register_pre_hook": "some calls run no hooks: see [torch 2.15's hooks](torch.md#torch-215s-hooks)",
    "setUsePgForSymmMemRendezvous": "absent: there is no symmetric memory",
    "split_group": "every rank of the new group must call it, and other ranks need not; gloo's may crash then",
    "supports_abort_hooks": "False",
    "supports_coalescing": "True; gloo's is False",
    "supports_completion_hooks": "False",
    "supports_splitting": "False, so that torch makes groups by `new_group`",
    "uid": "absent: the group's name is its identity",
    "unregister_abort_hook": "nothing can be registered: see `register_abort_hook`",
    "use_pg_for_symm_mem_rendezvous": "torch's own; without effect, since there is no symmetric memory",
}
"""What is not gloo's, or NCCL's, and why."""


def methods() -> dict[str, tuple[str, str]]:
    """Return the outcome and the reason for each name."""
    alike = dict.fromkeys(f"{_COLLECTIVES} {_IDENTITY}".split(), (SAME, ""))
    different = {name: (DIFFERENT, why) for name, why in DIFFERENCES.items()}
    refused = {name: ("refused", instead) for name, instead in REFUSED.items()}
    return dict(sorted({**alike, **different, **refused}.items()))


def page() -> str:
    """Return the text of ``docs/torch-group.md``."""
    return HEAD + "".join(f"| `{name}` | {outcome} | {why} |\n" for name, (outcome, why) in methods().items())
