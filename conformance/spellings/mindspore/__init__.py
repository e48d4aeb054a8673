"""MindSpore: ``communication.comm_func``, the primitives of ``ops``, ``mint.distributed``, ``ops.communication``.

Observed with mindspore 2.10.0 on CPU if that backend has the operation; otherwise taken from its documentation and
source. A function of ``comm_func``, like a primitive, does not change its input and returns a new result; ``mint`` and
``ops.communication`` write into their arguments, as torch does. Groups are names, and the order of ``create_group``'s
list is kept, except for messages.
"""

from __future__ import annotations

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.spellings.mindspore.functional import FUNCTIONAL
from collshim.conformance.spellings.mindspore.in_place import IN_PLACE
from collshim.conformance.spellings.mindspore.messages import FUNCTIONAL_MESSAGES
from collshim.conformance.spellings.mindspore.primitives import PRIMITIVES

SPELLINGS: tuple[Binding, ...] = (*FUNCTIONAL, *FUNCTIONAL_MESSAGES, *PRIMITIVES, *IN_PLACE)
