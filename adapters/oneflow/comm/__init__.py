"""``oneflow.comm``: OneFlow's collectives, over all ranks, with the observed behaviour of OneFlow 0.9.0.

Unlike in other frameworks, there is no group, no async handle and no reduce op (the result is always the sum, or the
logical or for bool). Every function except ``recv`` returns None and writes its result to an argument:

    ======================  =================================================================================
    all_reduce              ``tensor``'s own memory, so a tensor that it is a view of changes too
    all_gather, gather      the list's ENTRIES are replaced by new tensors; the old ones keep their values
    all_gather_into_tensor  ``output_tensor``'s memory, in any shape: only its number of elements is checked
    reduce_scatter_tensor   the same
    broadcast, scatter      ``tensor``'s own memory; for scatter's ``src`` see below
    reduce                  ``tensor``'s own memory on ``dst``
    all_to_all              the tensors of ``output_tensor_list``; for the rank's own entry see below
    reduce_scatter          ``output`` is rebound (``output.data = result``): a tensor that it was a view of keeps
                            its values, and ``output`` takes the input's dtype
    ======================  =================================================================================

Also rebound, and sharing memory with the input from then on: ``tensor`` on scatter's ``src``, with
``scatter_list[src]``; ``output_tensor_list[rank]`` of all_to_all, with ``input_tensor_list[rank]``. A NumPy array
cannot be rebound, so it is written.

Only the entries that all_gather and gather make carry a gradient: the derivative of the sum of all ranks' losses.
Autograd does not see the functions that write into memory, so a graph that has ``tensor`` in it does not change.

Differences from OneFlow 0.9.0, all of which are accidents there:

* a tensor may be of any library, and on any device, not only the one whose index is the local rank;
* the bare ``AssertionError`` that OneFlow raises for a wrong argument has a text here;
* if a root is not a rank, ``broadcast`` aborts, ``scatter`` hangs, and ``reduce`` leaves the result on no rank; here
  all three raise an ``ArgumentIndexError``;
* if the ranks' shapes or dtypes disagree, OneFlow aborts or leaves mixed-up or half-written values; here every rank
  raises a ``MismatchError``. A wrong entry of ``scatter_list`` leaves the peers hanging, and a wrong length of
  ``gather_list`` is found after the exchange; here both are refused before anything is sent;
* float16 and bfloat16 abort in reductions and broadcast on CPU; here they work;
* ``reduce`` on a rank other than ``dst`` leaves the sum in the memory that ``tensor`` was a view of; here that
  rank's memory is unchanged;
* ``reduce_scatter`` of entries of different dtypes reduces each in its own; here it is refused with a TypeError;
* ``all_to_all`` with one list for both arguments sends values that it has overwritten; here all input is read
  first;
* ``broadcast`` makes a leaf tensor that requires a gradient a non-leaf; here it stays a leaf;
* ``all_reduce`` returns before its peers have joined, and the first read waits; here the call waits;
* ``send`` to the rank itself loses the message, ``recv`` from it returns zeros, and ``recv`` from a rank that does not
  exist waits forever; here these are refused. ``send`` may return before its message is received.
"""

from collshim.oneflow.comm import comm_ops as comm_ops
from collshim.oneflow.comm.movement import (
    all_gather,
    all_gather_into_tensor,
    all_to_all,
    broadcast,
    gather,
    scatter,
)
from collshim.oneflow.comm.point_to_point import barrier, recv, send
from collshim.oneflow.comm.reductions import all_reduce, reduce, reduce_scatter, reduce_scatter_tensor

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]
