"""Programs that are wrong across ranks, and a scorer of their reports: ``collshim faults``.

| module | subject |
| --- | --- |
| ``programs/`` | faults, each with its corrected twin; written once against ``torch.distributed``'s names |
| ``program`` | what a program's header says, and its two functions |
| ``rank`` | one rank: runs a function and sends how that ended |
| ``job`` | all ranks of one run, started, listened to and ended |
| ``verdict`` | what counts as detected, named, shown |
| ``scorer`` | every program in every way of running, counted |
| ``report``, ``terminal``, ``page`` | the tables, for a terminal and for ``docs/faults.md`` |
"""
