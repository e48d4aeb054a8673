"""``collshim demo``: the five frameworks' documented examples, and one training in five dialects, on four ranks.

- ``examples/``: the documents' examples, as code that is run and shown
- ``expected/``: what the documents say comes out, and where they err
- ``training/``: one data-parallel training, written in each framework's words
"""

if __name__ != "collshim.demo":
    # Imported from the root of a checkout, this folder would be a second copy of every module in it.
    raise ImportError(f"the demo was imported as {__name__!r}, should be 'collshim.demo': import collshim.demo")
