"""Calls on GPUs: NCCL's part of a group, the meeting and connecting of its ranks, and the deadlines that NCCL lacks."""
