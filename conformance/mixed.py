"""The spellings that match when the ranks of one world use different dialects, and those that do not."""

from __future__ import annotations

from itertools import product

from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import COLLECTIVES, Case
from collshim.conformance.missing import is_missing
from collshim.conformance.reference import REDUCE_OPS
from collshim.conformance.reporting.markdown import table
from collshim.frameworks import FRAMEWORKS

# The cases that every framework admits: the whole world, root 0, sums of floats along axis 0, non-empty arrays.
COMMON = Admits(dtypes=("float32",), layouts=("contiguous",), roots=False, least_ndim=1, empty=False, least_size=2)


def dialects(case: Case) -> list[Binding]:
    """Return the bindings that are not missing and whose call of ``case`` matches the other dialects' calls."""
    supporting = [binding for binding in bindings() if not binding.alone and binding.supports(case)]
    return [binding for binding in supporting if not is_missing(f"collshim.{binding.path}")]


def pairs(case: Case) -> list[tuple[Binding, Binding]]:
    """Return all ordered pairs of these bindings from different frameworks; each function in one form."""
    plain = [binding for binding in dialects(case) if "async" not in binding.form]
    return [
        (first, second) for first, second in product(plain, repeat=2) if first.framework.name != second.framework.name
    ]


def reductions(name: str) -> list[str]:
    """Return the reductions for which two or more frameworks match; a collective that does not reduce has only sum."""
    cases = [Case(name, reduce_op=op) for op in REDUCE_OPS]
    return [case.reduce_op for case in cases if pairs(case)]


def shared() -> list[str]:
    """Return the collectives for which two or more frameworks have matching spellings."""
    return [name for name in COLLECTIVES if len({b.framework.name for b in dialects(Case(name))}) > 1]


def page() -> str:
    """Return the text of ``docs/mixed-worlds.md``."""
    rows = table(["collective", *(entry.title for entry in FRAMEWORKS.values())], map(_row, COLLECTIVES))
    exceptions = [
        [f"`{binding.name}`", _TITLES.get(binding.collective, binding.collective), binding.alone]
        for binding in _alone()
    ]
    modules = ", ".join(f"`{entry.functions}`" for entry in FRAMEWORKS.values())
    return _PAGE.format(modules=modules, rows=rows, exceptions=table(["spelling", "its collective", "why"], exceptions))


_TITLES = {"ring": "send, recv", "ring_object": "send_object, recv_object"}


def _row(name: str) -> list[str]:
    """Return the functions that match in a collective, framework by framework, missing ones included."""
    spellings = [one for one in bindings() if not one.alone and one.supports(Case(name, reduce_op=_op_of(one)))]
    cells = [_TITLES.get(name, name)]
    for entry in FRAMEWORKS.values():
        paths = dict.fromkeys(binding.path for binding in spellings if binding.framework.name == entry.name)
        names = [path.removeprefix(f"{entry.functions}.").removeprefix(f"{entry.name}.") for path in paths]
        cells.append(", ".join(f"`{name}`" for name in names) or "none")
    return cells


def _op_of(binding: Binding) -> str:
    """Return the sum if the binding has it, else its first reduction: each of MegEngine's has its own function."""
    ops = binding.admits.reduce_ops
    return "sum" if "sum" in ops else ops[0]


def _alone() -> list[Binding]:
    return [binding for binding in bindings() if binding.alone and "async" not in binding.form]


_PAGE = """# Mixed worlds

The ranks of one world can use functions of different frameworks: their calls match, since all adapters call the same
engine. So you can move a job to another framework one rank or one file at a time.

Calls match if they are the same operation: the same collective, reduction and root (as a rank in the group), and the
same shape and dtype of each part. Values are the same as in a world with one framework, bit for bit, and so are
gradients if the rules are the same (MindSpore's `Broadcast` has a different rule). Leave the check between ranks on, as
it is by default, because a few spellings learn shapes from it. A *spelling* is one function of a framework, or one way
to call it.

The tables omit the prefixes {modules}, and the framework's own name. Asynchronous and synchronous calls match.

{rows}
## What does not match, and why

If calls do not match, every rank raises a `MismatchError`. If a rank makes fewer calls, or calls in a different group,
the other ranks raise a `DeadlineError`. No call hangs, and no rank receives wrong data.

{exceptions}
These do not match in any framework:

| calls | why |
| --- | --- |
| parts with the same number of elements and different shapes | the ranks compare each part's shape, so `(6,)` and \
`(2, 3)` differ, although OneFlow's `all_gather_into_tensor` and `reduce_scatter_tensor` check only element counts |
| a mean of integers in TensorFlow and in another framework | TensorFlow's mean is a sum that it then divides, in \
float64 |
| a root other than the group's first rank, in MegEngine and in another framework | MegEngine has no argument for the \
root |
| groups of the same ranks in a different order | the order determines the ranks' numbers, so the parts would be in \
a different order |
| an object collective and a collective of arrays | an object is bytes of a length that only its sender knows |
"""
