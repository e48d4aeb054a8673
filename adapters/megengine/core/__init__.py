"""``megengine.core``: the names in it that programs import."""
