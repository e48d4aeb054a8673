"""Programs that are wrong across ranks, and a scorer of their reports: ``collshim faults``.

| module | subject |
| --- | --- |
| ``programs/`` | faults, each with its corrected twin; written once against ``torch.distributed``'s names |
| ``program`` | a program's header and its two functions |
| ``rank`` | one rank: runs a function and sends how it ended |
| ``job`` | all ranks of one run: starts, reads and ends them |
| ``verdict`` | the criteria: fault detected, ranks named, line shown |
| ``scorer`` | runs every program in every way, and counts the results |
| ``report``, ``terminal``, ``page`` | the tables, for a terminal and for ``docs/faults.md`` |
"""
