"""PyTorch: ``torch.distributed``, and its differentiable twin ``torch.distributed.nn.functional``.

Observed with torch 2.13.0 over gloo. Behaviour that torch documents but gloo refuses (unequal parts in ``all_gather``
and ``all_to_all``, the stacked forms of ``all_gather_into_tensor`` and ``reduce_scatter_tensor``, averages,
``nn.functional``'s gradients other than of sums) is taken from the documentation. A call returns None, or a work whose
``wait()`` returns True; an output is written, never replaced.
"""

from __future__ import annotations

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.spellings.torch.functional import FUNCTIONAL
from collshim.conformance.spellings.torch.messages import MESSAGES_AND_OBJECTS
from collshim.conformance.spellings.torch.written import WRITTEN

SPELLINGS: tuple[Binding, ...] = (*WRITTEN, *MESSAGES_AND_OBJECTS, *FUNCTIONAL)
