"""What records the real frameworks, and what makes the same calls again on collshim's adapters.

    asked.py        a call as data: its text, its inputs by rank
    trees.py        values as JSON and back
    performing.py   makes one call on one rank, and tells what that rank holds then
    dialects/       one module per framework: its arrays, its names, how its ranks are started
    catalogue/      what each framework is asked
    jobs.py         ranks of the real framework, started again where a call ended them
    recordings.py   the files

Everything here but ``recordings`` of a checkout runs beside the real framework too: standard library, NumPy (1.23
and newer) and the framework itself, nothing else.
"""
