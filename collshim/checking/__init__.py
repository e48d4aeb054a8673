"""``collshim check``: read a program without running it; report names that adapters lack, and mistaken calls."""
