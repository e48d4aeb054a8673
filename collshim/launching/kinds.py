"""The kinds of ranks that ``launch`` starts, each with a transport of its own."""

RANK_KINDS = ("threads", "processes")
"""Threads of this process, which share its memory; or processes of this machine."""
