"""``megengine.core._imperative_rt``."""
