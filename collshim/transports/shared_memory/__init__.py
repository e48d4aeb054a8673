"""Ranks that are processes of one host meet in shared memory."""
