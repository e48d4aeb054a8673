"""The real MindSpore 2.10.0, with its collectives carried by collshim between CPU ranks.

    pending.py      calls whose memory is not complete yet
    tensors.py      MindSpore's tensors as torch's, in the same memory
    named_groups.py MindSpore's groups by name, and how a rank joins
    functional.py   collectives that return results, with their gradients
    gradients.py    how these enter MindSpore's graph of gradients
    kernels.py      the classes that MindSpore's functions call: with results, or in place
    primitives.py   MindSpore's operators
    context.py      device names, modes, compiled graphs
    table.py        which name is replaced by which function

MindSpore's own Python code remains: argument checks, exceptions, the cache of groups, return values, objects, printing.
"""
