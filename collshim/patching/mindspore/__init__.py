"""The real MindSpore, 2.10.0, with its collectives carried by collshim between CPU ranks.

    pending.py      calls whose memory is not complete yet
    tensors.py      its tensors and torch's in the same memory
    named_groups.py its groups by name, and how a rank joins
    functional.py   collectives that give results, with their gradients
    gradients.py    how they enter its graph of gradients
    kernels.py      what its functions call: results, and writing in place
    primitives.py   its operators
    context.py      device names, modes, compiled graphs
    table.py        what is replaced by what

MindSpore's own Python stays: argument checks, exceptions, the cache of groups, what is returned, objects and printing.
"""
