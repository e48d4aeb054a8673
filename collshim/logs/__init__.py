"""The log of calls: each rank's lines and its file in ``COLLSHIM_LOG_DIR``, and ``collshim log``, which merges them."""
