"""Imported last by the server that forks the ranks: the modules that ranks need, which then stay shared with them.

A garbage collection writes to each object that it visits, and so copies the page of that object. It would also look for
cycles among some 200,000 objects of torch that live as long as the process.
"""

from __future__ import annotations

import gc

import collshim.launching.processes
import collshim.transports.processes.transport
import collshim.world  # noqa: F401

gc.collect()
gc.freeze()
