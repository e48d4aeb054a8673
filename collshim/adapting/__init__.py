"""What adapters share: device names without devices, names that fall through to torch, frameworks stood in for."""
