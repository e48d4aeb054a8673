"""``oneflow.framework.unittest``: OneFlow 0.9.0's module of ``oneflow.unittest``, and multi-rank examples."""

from __future__ import annotations

import doctest
from types import ModuleType

from collshim import world
from collshim.adapting.absent import saying
from collshim.oneflow.unittest import TestCase as TestCase
from collshim.oneflow.unittest import device_num as device_num
from collshim.oneflow.unittest import node_size as node_size
from collshim.oneflow.unittest import num_nodes_required as num_nodes_required
from collshim.oneflow.unittest import skip_unless as skip_unless
from collshim.oneflow.unittest import skip_unless_1n1d as skip_unless_1n1d
from collshim.oneflow.unittest import skip_unless_1n2d as skip_unless_1n2d
from collshim.oneflow.unittest import skip_unless_1n4d as skip_unless_1n4d
from collshim.oneflow.unittest import skip_unless_2n1d as skip_unless_2n1d
from collshim.oneflow.unittest import skip_unless_2n2d as skip_unless_2n2d
from collshim.oneflow.unittest import skip_unless_2n4d as skip_unless_2n4d


class _OfOneRank(doctest.OutputChecker):
    """A checker that accepts any output if the example is marked for a different rank."""

    def __init__(self, flags: list[int], rank: int) -> None:
        self._others = [flag for place, flag in enumerate(flags) if place != rank]

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return any(flag & optionflags for flag in self._others) or super().check_output(want, got, optionflags)


def check_multi_rank_docstr(module: ModuleType) -> None:
    """Run the examples in a module's docstrings on every rank.

    The output of an example marked ``# doctest: +ONLY_CHECK_RANK_1`` is compared only on rank 1, and so on.

    Raises:
        doctest.DocTestFailure: an example printed a different output.
        doctest.UnexpectedException: an example raised an exception.
    """
    own = world.current()
    flags = [doctest.register_optionflag(f"ONLY_CHECK_RANK_{rank}") for rank in range(own.size)]
    runner = doctest.DebugRunner(_OfOneRank(flags, own.rank))
    for example in doctest.DocTestFinder().find(module, module.__name__):
        runner.run(example)


__getattr__ = saying(__name__)
