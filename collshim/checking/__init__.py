"""``collshim check``: read a program without running it, and tell which names it lacks and which calls are mistakes."""
