"""send and recv."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="send_recv",
    title="send and recv",
    collectives=("ring",),
    says="One rank gives a tensor, another gets it. All peers are global ranks.",
    examples={
        "torch": """\
x = torch.tensor([1, 2]) + 10 * rank
dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
""",
        "oneflow": """\
x = flow.tensor([1, 2]) + 10 * rank
flow.comm.send(x, 1) if rank == 0 else flow.comm.recv(0)
""",
        "mindspore": """\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.send(x, 1) if rank == 0 else comm_func.recv(x, 0)
""",
        "megengine": """\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.remote_send(x, 1) if rank == 0 else F.distributed.remote_recv(0)
""",
    },
    notes={
        "torch": (
            "`recv` returns the sender's rank, and writes into its tensor. Without `src` it takes from anybody.",
            "A `recv` from the rank itself waits for an `isend` to itself, and without one until the deadline.",
        ),
        "oneflow": (
            "`recv` needs no tensor: shape and dtype come with the message. Where it is told `shape`, `dtype` and "
            "`device`, the sender says `send_meta=False`. It fills and returns `out`, where there is one.",
            "A `send` to the rank itself loses the message in OneFlow; here it is refused.",
        ),
        "mindspore": (
            "`recv` returns what came; its tensor only tells shape and dtype, and is not written.",
            "`isend` and `irecv` return handles; `irecv` returns `(tensor, handle)`.",
            "In a group the ranks that exchange messages are numbered in sorted order, whatever the group's order.",
        ),
        "megengine": (
            "`remote_send` returns None, at once; `remote_recv` discovers shape and dtype.",
            "A gradient goes back the way that the message came: both ranks call `GradManager.backward`.",
        ),
    },
)
