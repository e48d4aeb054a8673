"""``megengine.core.autodiff``."""
