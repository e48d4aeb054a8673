"""``megengine.core.tensor``."""
