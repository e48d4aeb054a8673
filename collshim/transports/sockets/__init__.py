"""Connections between the processes of a world: frames over TCP, whom to trust, and the thread that polls them."""
