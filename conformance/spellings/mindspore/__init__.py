"""MindSpore: ``communication.comm_func``, the primitives of ``ops``, ``mint.distributed``, ``ops.communication``.

From mindspore 2.10.0 run on CPU where that backend has the operation, else from its documentation and source.
A function of ``comm_func`` leaves its input alone and returns what it made; a primitive does too; ``mint`` and
``ops.communication`` write into what they are given, as torch does. Groups are names, and the order of
``create_group``'s list is kept, except where messages are sent.
"""

from __future__ import annotations

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.spellings.mindspore.functional import FUNCTIONAL
from collshim.conformance.spellings.mindspore.in_place import IN_PLACE
from collshim.conformance.spellings.mindspore.messages import FUNCTIONAL_MESSAGES
from collshim.conformance.spellings.mindspore.primitives import PRIMITIVES

SPELLINGS: tuple[Binding, ...] = (*FUNCTIONAL, *FUNCTIONAL_MESSAGES, *PRIMITIVES, *IN_PLACE)
