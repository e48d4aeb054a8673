"""The conformance suite: proves that every adapter behaves as the real framework was seen to behave."""

if __name__ != "collshim.conformance":
    # Imported from the root of a checkout, this folder would be a second copy of every module in it.
    raise ImportError(
        f"the conformance suite was imported as {__name__!r}, should be 'collshim.conformance': "
        "import collshim.conformance; for pytest, name collshim/conformance or --pyargs collshim.conformance"
    )
