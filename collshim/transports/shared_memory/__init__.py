"""Calls and messages between processes of one host, through shared memory."""
