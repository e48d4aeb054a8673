"""``collshim demo``: the five frameworks' documented examples, and one training in five dialects, on four ranks.

- ``examples/``: the documents' examples, as code that is run and shown
- ``expected/``: what the documents say comes out, and where they err
- ``training/``: one data-parallel training, written in each framework's words
"""
