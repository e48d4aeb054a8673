"""``mindspore.communication``: ranks and named groups, with the observed behaviour of MindSpore 2.10.0.

Unlike in other frameworks, a group is a string. Call ``init`` first; before it, the functions only return the numbers
in the launcher's environment. Defaults are literally ``"hccl_world_group"``, a name that means the world with every
backend; ``GlobalComm.WORLD_COMM_GROUP`` is ``"hccl_world_group"`` before ``init`` and ``"<backend>_world_group"`` after
it. Only the members of a group create it; they keep the order of its ``rank_ids``.

Differences from MindSpore 2.10.0:

* ``init`` accepts every backend name on every machine: here the name only sets ``GlobalComm.BACKEND``, and the tensors'
  device decides the transport. The default is ``"nccl"`` if torch sees a GPU, and otherwise ``"mccl"``. (MindSpore on
  CPU refuses ``"hccl"`` and ``"nccl"``.)
* MindSpore numbers the ranks of a group with unsorted ``rank_ids`` in two ways that contradict each other; here they
  are always numbered in the order of ``rank_ids``;
* ``release`` forgets the created groups and leaves the world up, so that ``get_rank`` still works, as in MindSpore on
  CPU; MindSpore's other backends tear the world down;
* ``create_group`` accepts ``options`` and ignores them: they are for MindSpore's devices.

``GlobalComm`` holds the calling rank's values: if ranks are threads of one process, each sees its own.
"""

from __future__ import annotations

from collshim.mindspore.communication.groups import (
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    GlobalComm,
)
from collshim.mindspore.communication.management import (
    create_group,
    destroy_group,
    get_comm_name,
    get_group_rank_from_world_rank,
    get_group_size,
    get_local_rank,
    get_local_rank_size,
    get_process_group_ranks,
    get_rank,
    get_world_rank_from_group_rank,
    init,
    release,
)

from collshim.mindspore.communication import comm_func  # isort: skip  # it imports this package's names

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "comm_func",
    "create_group",
    "destroy_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]
