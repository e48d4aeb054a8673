"""The engine under torch's own ``torch.distributed``: groups of which torch's modules call the methods.

| what | where |
| --- | --- |
| the collectives as methods of a group, in the forms that torch's C++ calls them in | group |
| ``torch.distributed.init_process_group(backend="collshim")`` | backend |
| torch's default group over this rank's world, and groups of torch's that this rank adopts | adoption |

So DistributedDataParallel, fully_shard, DTensor and DeviceMesh of unmodified torch find this rank's world.
"""
