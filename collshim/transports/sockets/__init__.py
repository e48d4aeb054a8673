"""Connections between the processes of a world: frames over TCP, authentication, and the thread that polls sockets."""
