"""What each framework's spelling of a collective does, from its bindings: the pages on conventions and differences.

shapes.py        shapes in the letters n, a and b, and what a tree is in a word or two
called.py        how a binding calls its function, noted while it does
gradient.py      what an input gets where every rank's loss is the sum of what it holds
evidence.py      how many recorded calls stand behind a function, and where collshim differs from them
facts.py         all of it for one spelling, with every spelling that is there run and compared first
sheets.py        what each page is about; its examples and notes are the spellings' own
example.py       runs an example on two ranks, and tells what each holds
side_by_side.py  one collective in five frameworks
collective.py    ``docs/differences/<collective>.md``
pair.py          ``docs/differences/<framework>-<framework>.md``
overview.py      ``docs/differences/index.md`` and ``docs/conventions.md``
pages.py         every page by its path
"""
