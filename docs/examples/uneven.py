"""Gather the losses of all ranks, of which the last has fewer samples: collshim run -n 4 uneven.py."""

import torch

import collshim.torch.distributed as dist

dist.init_process_group("gloo")
samples = 8 if dist.get_rank() < 3 else 5
losses = [torch.zeros(samples) for _ in range(4)]
dist.all_gather(losses, torch.rand(samples))
