"""``docs/conventions.md`` and ``docs/differences/index.md``."""

from __future__ import annotations

from collshim.conformance.conventions.collective import TITLES
from collshim.conformance.conventions.evidence import version
from collshim.conformance.conventions.facts import Facts
from collshim.conformance.conventions.groups import shared
from collshim.conformance.conventions.pair import PAIRS, name, title
from collshim.conformance.conventions.sheets import Sheet, sheets
from collshim.conformance.conventions.side_by_side import NOTHING, first
from collshim.conformance.recorder import recordings
from collshim.conformance.reporting.markdown import bullets, table
from collshim.frameworks import FRAMEWORKS


def conventions_page() -> str:
    """Return the text of ``docs/conventions.md``."""
    versions = ", ".join(f"{entry.title} {version(entry.name)}" for entry in FRAMEWORKS.values())
    blocks = ((entry.title, entry.start) for entry in FRAMEWORKS.values())
    starts = "\n".join(f"{title}, on each rank:\n\n```python\n{start}```\n" for title, start in blocks)
    sections = "\n".join(_returns(sheet) for sheet in sheets())
    return _PAGE.format(versions=versions, starts=starts, sections=sections, groups=shared(), provenance=_provenance())


def index_page() -> str:
    """Return the text of ``docs/differences/index.md``."""
    rows = [
        [f"[{TITLES.get(collective, collective)}]({sheet.name}.md)", *_names(collective)]
        for sheet in sheets()
        for collective in sheet.collectives
    ]
    pairs = [[FRAMEWORKS[one].title, *(_link(one, other) for other in FRAMEWORKS)] for one in FRAMEWORKS]
    names = [FRAMEWORKS[framework].title for framework in FRAMEWORKS]
    return _INDEX.format(pairs=table(["", *names], pairs), collectives=table(["", *names], rows))


def _returns(sheet: Sheet) -> str:
    """Return the results of each framework's usual spelling; of several collectives, the first."""
    every = first(sheet.collectives[0])
    rows = [
        [f"`{one.call}`{', not yet here' * one.missing}", one.rows["returns"], _result_cell(one)]
        for one in every.values()
    ]
    heading = f"### [{sheet.title or sheet.name}](differences/{sheet.name}.md)"
    return f"{heading}\n\n{sheet.says}\n\n{table(['call', 'returns', 'the result'], rows)}"


def _result_cell(one: Facts) -> str:
    place, shape, memory = (one.rows.get(subject, "") for subject in ("the result is", "its shape", "memory"))
    if not place:
        return NOTHING
    more = f"; {memory}" if memory and not memory.endswith("is written") else ""
    return f"{place}{': ' + shape if shape else ''}{more if place != 'the return value' else ''}"


def _names(collective: str) -> list[str]:
    """Return the last name of each framework's usual spelling."""
    every = first(collective)
    cells = []
    for framework in FRAMEWORKS:
        one = every.get(framework)
        said = NOTHING if one is None else f"`{one.binding.path.rpartition('.')[2]}`"
        cells.append(f"{said}, not yet here" if one is not None and one.missing else said)
    return cells


def _link(one: str, other: str) -> str:
    if one == other:
        return ""
    pair = next(pair for pair in PAIRS if set(pair) == {one, other})
    return f"[{title(pair)}]({name(pair)}.md)"


def _provenance() -> str:
    lines = []
    for entry in FRAMEWORKS.values():
        source = recordings.provenance(recordings.folders(entry.name)[-1])
        lines.append(
            f"{entry.title} {source['version']}: {source['cases']} calls, {source['provenance']}: {source['how']}"
        )
    return bullets([line if line.endswith(".") else f"{line}." for line in lines])


_INDEX = """# Differences

To port a program, see the page of your pair of frameworks. To look up a function, see the page of its collective. All
pages are made from the bindings and recordings of the conformance suite, and every example on them was run.

## From one framework to another

{pairs}
## By collective

{collectives}
The table shows one function of each framework, without the path of its module. [Conventions](../conventions.md)
explains the pages, shows how a rank is initialized, and lists contradictions in the frameworks' documents.
"""

_PAGE = """# Conventions

This page shows what each framework returns, on which rank, and in which shape. The tables are made from the bindings of
the conformance suite. While this page is made, the bindings are run on collshim's adapters and their results are
compared. The adapters follow the recorded behaviour of the real frameworks: {versions}.

More: [from one framework to another, and by collective](differences/index.md); [gradients](gradients.md);
[mixed worlds](mixed-worlds.md).

## How to read the tables

- There are `n` ranks. A rank's tensor has the shape `(a, b)`. If a rank passes one part for each rank, a part has the
  shape `(a, b)`, and all parts in one tensor have the shape `(n*a, b)`. `n × (a, b)` means `n` tensors of that shape in
  a list or tuple.
- *returns*: the return value of the plain call. With `async_op=True`, a handle is returned in place of None, or as the
  second element of the pair. A *handle* is a `Work` in PyTorch, and a `CommHandle` in MindSpore.
- *memory*: "is written" means that the result is in the memory of the argument.
- *gradient*: the gradient of every element of a rank's input, if each rank's loss is the sum of all elements that the
  rank has after the call. It is `n` if the losses of all ranks contribute to it, and 1 if one rank's loss does. It is
  None if autograd leaves no gradient, and 0 if autograd leaves zeros. "no" means that autograd does not see the call,
  and "not checked" that the suite does not differentiate the function.
- *axis*: the axis along which parts are joined or cut; lists have none.
- *groups*: "none" if only the world is supported. *The root is* a global rank, or a rank in the group.
- *error for a non-tensor*: the exception if the first tensor argument is not a tensor; "–" if the suite does not check
  it.
- *recorded calls*: the framework's version, and the number of calls of this function that were recorded with it. A call
  in worlds of three sizes counts three times. collshim's tests repeat all of these calls on its adapter.

## Start

Every example on these pages runs on two ranks, for example with `collshim run -n 2 program.py`, after the lines below.
The tensors are always torch's. When the examples were written, those of PyTorch (over gloo), OneFlow and TensorFlow
were also run without `collshim.`, on the frameworks themselves, with the same results. On MindSpore and MegEngine
themselves, the examples need devices.

{starts}
## Return values

{sections}
{groups}
## Where the documents contradict themselves

- **MindSpore, `all_gather_into_tensor`.** The manual says that the shape of the result is `(N, x1, x2, ...)`. In the
  implementation, in the manual's own example and in the upstream test it is `(N*x1, x2, ...)`, and so it is in
  collshim. If you want the manual's form, use `collshim.options(mindspore_gather="stacked")` or
  `COLLSHIM_MINDSPORE_GATHER=stacked`. The manual also says that the default is `group=None`, but the real default is
  the world group's name, and None is refused.
- **OneFlow, `all_gather_into_tensor`.** The "stack" form of the manual, `(2, 3, 2)` for inputs of `(2, 3)`, is not a
  stack of the inputs. It works because OneFlow checks only the number of elements. collshim does the same.
- **PyTorch, `all_to_all`.** The manual's complex example gathers into int64 tensors, which PyTorch itself refuses. gloo
  refuses the manual's ragged example; in collshim it works.
- **TensorFlow, `all_gather`.** The manual's nested example, gathered from `[0]` and `[1]`, prints `[1, 2]`; the real
  result is `[0, 1]`.
- **MegEngine.** According to the manual, `group` may be a list of ranks; the implementation refuses a list, and so does
  collshim.

## What was recorded

{provenance}"""
