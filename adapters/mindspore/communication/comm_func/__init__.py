"""``mindspore.communication.comm_func``: the functional collectives of MindSpore, from 2.4 to 2.10.0.

Unlike in other frameworks, the functions do not write into their arguments, except for all_to_all_v_c. Five functions
return ``(output, handle)``; ``handle`` is None without ``async_op=True``. They are all_gather_into_tensor, all_reduce,
reduce_scatter_tensor, all_to_all_with_output_shape and all_to_all_single_with_output_shape. The others return only the
output. If a rank receives nothing (in reduce and gather_into_tensor every rank except ``dst``; in batch_isend_irecv the
sender of an ``isend``), its output is a placeholder with a meaningless value. ``src``, ``dst`` and ``peer`` are global
ranks, even in a subgroup. ``group=None`` means all ranks in all_to_all_*, all_to_all_v_c and P2POp, and raises
TypeError in the other functions.

The output has the input's type: it is a NumPy array for a NumPy array. Gradients are the derivative of the sum of all
ranks' losses, with two exceptions: the gradient of ``broadcast``'s input is the unchanged gradient of the same rank's
output, as in MindSpore; and messages (send, recv, isend, irecv, batch_isend_irecv) carry no gradient.

**all_gather_into_tensor: documentation against behaviour.** According to the reference manual (every version from 2.3
to 2.10), the output's shape is ``(N, x1, x2, ...)``; but its own example and the implementation return ``(N * x1, x2,
...)``, which is also the default here. For the form in the manual, use ``collshim.options(mindspore_gather="stacked")``
or COLLSHIM_MINDSPORE_GATHER=stacked.

Differences from MindSpore 2.10.0:

* no deprecation warning is logged;
* every function works on CPU and on subgroups in any order;
* all_to_all_single_with_output_shape without ``input_split_sizes`` divides the input by its own shape, while MindSpore
  uses ``output_shape``; the shapes of a message at the sender and the receiver must agree, while MindSpore compares
  only the number of elements;
* an ``async_op`` output that a gradient will flow through is complete when the call returns, so nothing overlaps with
  it. With ``async_op``, and in the all_to_all functions always, either every rank's input requires a gradient or none;
  in other calls a rank whose input requires no gradient still joins the backward pass.
"""

from collshim.mindspore.communication.comm_func.all_to_all import (
    all_to_all_single_with_output_shape,
    all_to_all_v_c,
    all_to_all_with_output_shape,
)
from collshim.mindspore.communication.comm_func.batch import P2POp, batch_isend_irecv
from collshim.mindspore.communication.comm_func.collectives import (
    all_gather_into_tensor,
    all_reduce,
    barrier,
    reduce_scatter_tensor,
)
from collshim.mindspore.communication.comm_func.handle import CommHandle
from collshim.mindspore.communication.comm_func.point_to_point import irecv, isend, recv, send
from collshim.mindspore.communication.comm_func.rooted import (
    broadcast,
    gather_into_tensor,
    reduce,
    scatter_tensor,
)

__all__ = [
    "CommHandle",
    "P2POp",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single_with_output_shape",
    "all_to_all_v_c",
    "all_to_all_with_output_shape",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather_into_tensor",
    "irecv",
    "isend",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "scatter_tensor",
    "send",
]
