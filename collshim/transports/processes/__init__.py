"""Ranks that are processes: NCCL for CUDA tensors and gloo for CPU tensors, through collshim's own ProcessGroups."""
