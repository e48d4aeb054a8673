"""barrier."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="barrier",
    collectives=("barrier",),
    says="No rank goes on before every rank has come.",
    examples={
        "torch": "dist.barrier()\n",
        "oneflow": "flow.comm.barrier()\n",
        "mindspore": "comm_func.barrier()\n",
        "megengine": "dist.group_barrier()\n",
    },
    notes={
        "torch": ("`monitored_barrier` tells who did not come.",),
        "tensorflow": ("There is none: a collective among all replicas waits for them.",),
    },
)
