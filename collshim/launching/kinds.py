"""The kinds of ranks that ``launch`` starts, each with its own transport."""

RANK_KINDS = ("threads", "processes")
"""Threads of this process, which share its memory; or processes of this machine."""
