"""Ranks that are processes: collshim's own ProcessGroups use NCCL for CUDA tensors and gloo for CPU tensors."""
