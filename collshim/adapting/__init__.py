"""Code that adapters share: refusals, device names, names that fall through to torch, and names that are absent."""
