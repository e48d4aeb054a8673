"""Calls on GPUs: NCCL's part of a group, how the ranks meet and connect, and the deadlines that NCCL lacks."""
