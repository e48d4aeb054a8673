"""``megengine.core.ops``."""
