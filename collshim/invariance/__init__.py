"""Checks that a training step computes the same on any number of ranks: ``collshim invariance``.

A step is run on one rank and on several, with the same seeds, first parameters and global batch. Its gradients are
compared by parameter. If they differ, both runs are repeated, the results of all operations are kept, and a search
finds the line that explains the difference.

| module | subject |
| --- | --- |
| ``program`` | runs a step on ranks that are processes or threads |
| ``recorder``, ``tracing``, ``calls`` | what a rank notes: parameters, gradients, operations, collectives |
| ``parameters``, ``outcome``, ``records`` | the parameters of a step, what it returned, and what a run leaves behind |
| ``own_random``, ``replacing`` | a random number generator per thread, and functions that replace torch's in a run |
| ``relations`` | how the ranks' tensors relate to one: replicated, varying, partial, by which factor |
| ``pieces``, ``verdict`` | which part of a parameter a rank holds, and how its gradient compares |
| ``flow``, ``changes``, ``states``, ``timeline``, ``search``, ``culprit`` | the search for the line |
| ``check``, ``table``, ``command``, ``assertion`` | the complete check, its report, the command, the assertion |
| ``against`` | two programs instead of two numbers of ranks |
"""
