"""``oneflow.comm``: OneFlow's collectives, over all ranks, as OneFlow 0.9.0 was seen to behave.

What sets them apart from their neighbours: there is no group, no async handle and no reduce op (always the
sum; the logical or for bool). Every function but ``recv`` returns None and hands its result over in an
argument:

    ======================  =================================================================================
    all_reduce              ``tensor``'s own memory, so that a tensor it is a view of changes too
    all_gather, gather      the ENTRIES of the list are replaced by new tensors; old ones keep their values
    all_gather_into_tensor  ``output_tensor``'s memory, in any shape: only its number of elements is checked
    reduce_scatter_tensor   likewise
    broadcast, scatter      ``tensor``'s own memory; on scatter's ``src`` see below
    reduce                  ``tensor``'s own memory on ``dst``
    all_to_all              the tensors of ``output_tensor_list``; the own one see below
    reduce_scatter          ``output`` is rebound (``output.data = result``): a tensor it was a view of keeps
                            its values, and ``output`` takes the input's dtype
    ======================  =================================================================================

Rebound too, and from then on one memory with the input: ``tensor`` on scatter's ``src``, with
``scatter_list[src]``; ``output_tensor_list[rank]`` of all_to_all, with ``input_tensor_list[rank]``. A NumPy
array cannot be rebound: it is written into instead.

Only the entries that all_gather and gather make carry a gradient (its rule: the derivative of the sum of all
ranks' losses). The functions that write into memory are unseen by autograd: a graph that ``tensor`` belongs
to stays as it was.

Differences from OneFlow 0.9.0, each of them an accident there:

* a tensor need not be OneFlow's, nor lie on the device whose index is the local rank;
* the bare ``AssertionError`` that OneFlow raises on a wrong argument has a text here;
* a root that is no rank: ``broadcast`` aborts, ``scatter`` hangs, ``reduce`` gives nobody the result; here
  ``ArgumentIndexError``;
* ranks whose shapes or dtypes disagree: aborts, mixed-up or half-written values; here ``MismatchError`` on
  every rank. A wrong entry of ``scatter_list`` leaves the peers hanging and a wrong length of ``gather_list``
  is found after the exchange; here both are refused before anything is sent;
* float16 and bfloat16 abort in reductions and broadcast on CPU; here they work;
* ``reduce`` on a rank other than ``dst`` leaves the sum in the memory that ``tensor`` was a view of; here
  that rank's memory is left alone;
* ``reduce_scatter`` of entries in different dtypes reduces each in its own; here it is refused, with TypeError;
* ``all_to_all`` with one list for both arguments sends values that it has overwritten; here all input is read
  first;
* ``broadcast`` makes a leaf tensor that requires a gradient a non-leaf; here it stays a leaf;
* ``all_reduce`` returns before its peers have joined and the first reading waits; here the call waits;
* ``send`` to oneself loses the message, ``recv`` from oneself gives zeros, and from no rank it waits for ever; here
  these are refused. ``send`` may return before its message was received.
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
