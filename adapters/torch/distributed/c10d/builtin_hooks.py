"""DDP's built-in hook that compresses to float16, on the engine's groups.

Torch has two hooks in C++. The compressing hook reads the value of an all_reduce's future as a C++ list of tensors, and
fails if the value is a Python object, as it is in every future that is made in Python. On one of the engine's groups,
DDP registers torch's hook in Python instead, which computes the same.
"""

from __future__ import annotations

from functools import cache, wraps
from typing import Any

from torch.distributed import BuiltinCommHookType
from torch.nn.parallel import DistributedDataParallel

from collshim.torch.distributed.c10d.torch_group import TorchGroup


@cache
def install() -> None:
    """Let ``DistributedDataParallel`` choose the hook by its group, for the rest of the process."""
    kind: Any = DistributedDataParallel
    register = kind._register_builtin_comm_hook

    @wraps(register)
    def register_by_group(self: Any, comm_hook_type: Any) -> None:
        if comm_hook_type == BuiltinCommHookType.FP16_COMPRESS and isinstance(self.process_group, TorchGroup):
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

            self.register_comm_hook(self.process_group, fp16_compress_hook)
        else:
            register(self, comm_hook_type)

    kind._register_builtin_comm_hook = register_by_group
