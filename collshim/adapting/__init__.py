"""What adapters share: refusals, device names without devices, what falls through to torch, frameworks stood in for."""
