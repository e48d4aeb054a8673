"""Ranks that are processes: NCCL for CUDA tensors, gloo for CPU tensors, through torch ProcessGroups of our own."""
