"""The conformance suite: checks that every adapter behaves as its real framework was recorded to behave."""

if __name__ != "collshim.conformance":
    # Imported from the root of a checkout, this folder would become a second copy of all its modules.
    raise ImportError(
        f"the conformance suite was imported as {__name__!r}, should be 'collshim.conformance': "
        "import collshim.conformance; for pytest, name collshim/conformance or --pyargs collshim.conformance"
    )
