"""``collshim demo``: the five frameworks' documented examples, and one training in five dialects, on four ranks.

- ``examples/``: the documents' examples, as code that is run and shown
- ``expected/``: the results that the documents give, and their errors
- ``training/``: one data-parallel training, written with each framework's functions
"""

if __name__ != "collshim.demo":
    # Imported from the root of a checkout, this folder would become a second copy of all its modules.
    raise ImportError(f"the demo was imported as {__name__!r}, should be 'collshim.demo': import collshim.demo")
