"""The behaviour of each framework's spelling of a collective, read from its binding, for the pages that compare them.

shapes.py        shapes in the letters n, a and b, and short descriptions of trees
called.py        how a binding calls its function, recorded during the call
gradient.py      the gradient of an input if every rank's loss is the sum of what it holds
evidence.py      how many recorded calls support a function, and where collshim differs from them
facts.py         all of this for one spelling, after every available spelling was run and compared
sheets.py        the subject of each page; examples and notes belong to the spellings
example.py       runs an example on two ranks, and shows what each rank holds
side_by_side.py  one collective in five frameworks
collective.py    ``docs/differences/<collective>.md``
pair.py          ``docs/differences/<framework>-<framework>.md``
overview.py      ``docs/differences/index.md`` and ``docs/conventions.md``
pages.py         every page by its path
"""
