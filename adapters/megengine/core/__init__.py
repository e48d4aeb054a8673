"""``megengine.core``: the names of it that programs import."""
