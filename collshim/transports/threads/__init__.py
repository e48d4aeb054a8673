"""Ranks that are threads of one process: their tensors are read and written directly, without sockets or staging."""
