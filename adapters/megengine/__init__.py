"""MegEngine: `megengine.distributed` and its collectives over collshim."""
