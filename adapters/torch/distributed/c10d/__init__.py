"""The engine under torch's own ``torch.distributed``: groups whose methods torch's modules call.

| what | where |
| --- | --- |
| the collectives as methods of a group, in the forms that torch's C++ calls | group |
| their calls with several tensors of a rank | several |
| what torch asks of a group besides: devices, options, parts of it, its end | torch_group |
| torch 2.15's hooks around these calls, and its flight recorder | hooked |
| ``torch.ops.c10d`` with such groups, before torch 2.15 | operators |
| DDP's built-in hook that compresses to float16 | builtin_hooks |
| ``torch.distributed.init_process_group(backend="collshim")`` | backend |
| torch's default group over this rank's world, and groups of torch's that this rank adopts | adoption |

With these, DistributedDataParallel, fully_shard, DTensor and DeviceMesh of unmodified torch use this rank's world.
"""
