"""Imported last by the server that forks ranks off: what ranks need, which then stays shared with them.

A collection of garbage writes into each object that it looks at, and so copies the page that the object is on; and it
looks for cycles among some 200,000 objects of torch's, which end with the process.
"""

from __future__ import annotations

import gc

import collshim.launching.processes
import collshim.transports.processes.transport
import collshim.world  # noqa: F401

gc.collect()
gc.freeze()
