"""all_reduce."""

from __future__ import annotations

from collshim.conformance.conventions.sheets.sheet import Sheet

SHEET = Sheet(
    name="all_reduce",
    collectives=("all_reduce",),
    says="Every rank gives a tensor; every rank gets the sum of all, or their largest, smallest, mean and so on.",
    examples={
        "torch": """\
x = torch.tensor([1, 2]) + 10 * rank
dist.all_reduce(x)
""",
        "oneflow": """\
x = flow.tensor([1, 2]) + 10 * rank
flow.comm.all_reduce(x)
""",
        "mindspore": """\
x = ms.Tensor([1, 2]) + 10 * rank
comm_func.all_reduce(x)
""",
        "tensorflow": """\
x = tf.constant([1, 2]) + 10 * rank
strategy.run(lambda: replica().all_reduce("SUM", x))
""",
        "megengine": """\
x = torch.tensor([1, 2]) + 10 * rank
F.distributed.all_reduce_sum(x)
""",
    },
    notes={
        "torch": (
            "`op` is `dist.ReduceOp.SUM`, `AVG`, `PRODUCT`, `MIN`, `MAX`, `BAND`, `BOR` or `BXOR`.",
            "It is unseen by autograd: to train, call `dist.nn.functional.all_reduce(x)`, which returns the result.",
        ),
        "oneflow": (
            "It always sums; of bool it is the logical or. For a mean divide afterwards.",
            "It is unseen by autograd.",
        ),
        "mindspore": (
            "`op` is text: `sum`, `prod`, `min` or `max`; `avg` is a TypeError.",
            "Take the result: `output, _ = comm_func.all_reduce(x)`. `x` keeps its value.",
        ),
        "tensorflow": (
            "`reduce_op` is `SUM` or `MEAN`, as text or as `tf.distribute.ReduceOp`.",
            "A nest of tensors goes in and the same nest comes out.",
            "A MEAN of integers over several replicas is float64.",
        ),
        "megengine": ("One function for each reduction. Tied ranks of `_max` and `_min` each get the whole gradient.",),
    },
)
