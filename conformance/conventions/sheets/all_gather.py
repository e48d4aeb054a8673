"""all_gather."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="all_gather",
    collectives=("all_gather",),
    says="Every rank gives a tensor; every rank gets all of them, in the order of the ranks.",
    examples={
        "torch": """\
x = torch.tensor([1, 2]) + 10 * rank
outs = [torch.zeros(2, dtype=torch.int64) for _ in range(size)]
dist.all_gather(outs, x)
""",
        "oneflow": """\
x = flow.tensor([1, 2]) + 10 * rank
outs = [None] * size
flow.comm.all_gather(outs, x)
""",
        "mindspore": """\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.all_gather_into_tensor(x)
""",
        "tensorflow": """\
x = tf.constant([1, 2]) + 10 * rank
strategy.run(lambda: replica().all_gather(x, axis=0))
""",
        "megengine": """\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.all_gather(x)
""",
    },
    notes={
        "torch": (
            "The tensors in the list are written: views of one buffer fill that buffer. They must be there, in the "
            "right shape and dtype.",
            "It is unseen by autograd: to train through it, call `dist.nn.functional.all_gather(x)`, "
            "which returns a tuple.",
            "`all_gather_single(output, x)` fills one tensor; until torch 2.12 it was `all_gather_into_tensor`.",
        ),
        "oneflow": (
            "The **entries of the list are replaced** by new tensors. What was in it is not written, so a list of None "
            "will do, and views of one buffer leave that buffer as it was.",
            "The new entries are differentiable.",
            "`all_gather_into_tensor` takes an output of any shape with as many elements as all inputs have.",
        ),
        "mindspore": (
            "Take the result: `output, _ = comm_func.all_gather_into_tensor(x)`. It is concatenated along axis 0.",
            "The manual's prose says `(N, x1, x2, ...)`; see "
            "[where the documents contradict themselves](../conventions.md#where-the-documents-contradict-themselves).",
        ),
        "tensorflow": (
            "It is a method of the replica's context, called inside `strategy.run`.",
            "Lengths along `axis` may differ between replicas; `axis` has no default, and is counted from the front.",
            "A nest of tensors goes in and the same nest comes out.",
        ),
        "megengine": ("`axis` is counted from the front; the order is that of the group's list.",),
    },
)
