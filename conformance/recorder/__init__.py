"""Records the real frameworks, and repeats the same calls on collshim's adapters.

    asked.py        a call as data: its text, its inputs by rank
    trees.py        values as JSON and back
    performing.py   makes one call on one rank, and returns the rank's state after it
    dialects/       one module per framework: its arrays, its names, how its ranks are started
    catalogue/      the calls of each framework
    jobs.py         ranks of the real framework, restarted if a call ended them
    recordings.py   the files

All of this, except the recordings of a checkout, also runs beside the real framework, and needs only the standard
library, NumPy (1.23 or newer) and the framework itself.
"""
