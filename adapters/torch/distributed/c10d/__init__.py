"""The engine under torch's own ``torch.distributed``: groups whose methods torch's modules call.

| what | where |
| --- | --- |
| the collectives as methods of a group, in the forms that torch's C++ calls | group |
| calls in which each rank passes several tensors | several |
| the other methods that torch needs of a group: devices, options, splits, shutdown | torch_group |
| torch 2.15's hooks around these calls, and its flight recorder | hooked |
| ``torch.ops.c10d`` with such groups, before torch 2.15 | operators |
| DDP's built-in hook that compresses to float16 | builtin_hooks |
| ``torch.distributed.init_process_group(backend="collshim")`` | backend |
| torch's default group over this rank's world, and torch's own groups that this rank adopts | adoption |

With these, DistributedDataParallel, fully_shard, DTensor and DeviceMesh of unmodified torch use this rank's world.
"""
