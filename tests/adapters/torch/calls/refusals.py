"""Short calls: queries, and calls that torch refuses."""

from __future__ import annotations

from datetime import timedelta

import torch

from tests.adapters.torch.calls.collectives import SIZE, Call, Op, tensor_of

F, INT, C = torch.zeros(2), torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.complex64)
CALLS: dict[str, Call] = {
    "monitored barrier": lambda d, rank: [d.monitored_barrier(), d.monitored_barrier(timeout=timedelta(seconds=20))],
    "complex sum": lambda d, rank: [d.all_reduce(tensor := tensor_of(rank) * 1j), tensor.tolist()],
    "ranks": lambda d, rank: [d.get_rank(), d.get_world_size(), d.get_rank(-100), d.get_world_size(-100)],
    "names": lambda d, rank: [d.get_backend(), d.is_initialized(), d.group.WORLD.group_name, d.group.WORLD.size()],
    "old names": lambda d, rank: [
        d.all_gather_into_tensor(torch.zeros(9), F.new_zeros(3)),
        d.reduce_scatter_tensor(torch.zeros(3), torch.zeros(9)),
    ],
    "not all tensors": lambda d, rank: d.all_gather([F, F, None], F),
    "wrong number of sizes": lambda d, rank: d.all_to_all_single(F, F, [2], [2]),
    "sizes are no ints": lambda d, rank: d.all_to_all_single(F, F, [0.5], [2]),
    "a source that is no int": lambda d, rank: d.broadcast(F, 0.5),
    "a destination that is none": lambda d, rank: d.reduce(F, -1),
    "group of an unknown backend": lambda d, rank: d.new_group(backend="nope"),
    "timeout is no timedelta": lambda d, rank: d.new_group([0], timeout=3),
    "timeout of a barrier": lambda d, rank: d.barrier(timeout=3),
    "backend outside": lambda d, rank: d.get_backend(-100),
    "rank in no group": lambda d, rank: d.get_group_rank(None, 0),
    "monitored barrier of a number": lambda d, rank: d.monitored_barrier(timeout=3),
    "no list for objects": lambda d, rank: d.scatter_object_list([], [1] * SIZE),
    "object that cannot be pickled": lambda d, rank: d.all_gather_object([None] * SIZE, lambda: None),
    "objects to itself": lambda d, rank: d.send_object_list([1], rank),
    "list of objects on the wrong rank": lambda d, rank: d.gather_object(1, None if rank == 0 else [0] * SIZE, 0),
    "coalesced of two dtypes": lambda d, rank: d.all_reduce_coalesced([F, INT]),
    "coalesced of no list": lambda d, rank: d.all_reduce_coalesced((F, F)),
    "coalesced order of complex": lambda d, rank: d.all_reduce_coalesced([C], Op.MAX),
    "batch of nothing": lambda d, rank: d.batch_isend_irecv([]),
    "batch of other things": lambda d, rank: d.batch_isend_irecv([F]),
    "batch of no list": lambda d, rank: d.batch_isend_irecv(3),
    "P2POp of a broadcast": lambda d, rank: d.P2POp(d.broadcast, F, 0),
    "P2POp of no tensor": lambda d, rank: d.P2POp(d.isend, [1.0], 0),
    "P2POp without a peer": lambda d, rank: d.P2POp(d.isend, F),
    "P2POp with two peers": lambda d, rank: d.P2POp(d.isend, F, 0, group_peer=0),
    "subgroups too large": lambda d, rank: d.new_subgroups(100),
    "subgroups that do not divide": lambda d, rank: d.new_subgroups(2),
    "subgroups of none": lambda d, rank: d.new_subgroups(0),
    "no subgroups": lambda d, rank: d.new_subgroups_by_enumeration([]),
    "subgroups out of range": lambda d, rank: d.new_subgroups_by_enumeration([[0, 9]]),
    "no split": lambda d, rank: d.split_group(),
    "config outside": lambda d, rank: d.get_backend_config(-100),
    "barrier of a device": lambda d, rank: d.barrier(device_ids=[rank]),
    "destroy what is no group": lambda d, rank: d.destroy_process_group(5),
}
