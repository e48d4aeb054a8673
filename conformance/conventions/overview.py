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
    starts = "\n".join(f"{entry.title}:\n\n```python\n{entry.start}```\n" for entry in FRAMEWORKS.values())
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
        [f"`{one.call}`{', not yet here' * one.missing}", one.rows["comes back"], _result_cell(one)]
        for one in every.values()
    ]
    heading = f"### [{sheet.title or sheet.name}](differences/{sheet.name}.md)"
    return f"{heading}\n\n{sheet.says}\n\n{table(['call', 'comes back', 'the result'], rows)}"


def _result_cell(one: Facts) -> str:
    place, shape, memory = (one.rows.get(subject, "") for subject in ("the result is", "its shape", "memory"))
    if not place:
        return NOTHING
    more = f"; {memory}" if memory and not memory.endswith("is written") else ""
    return f"{place}{': ' + shape if shape else ''}{more if place != 'what comes back' else ''}"


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

There is a page for each pair of frameworks, to port a program by, and one for each collective, to look a function up.
Both are made from the bindings and recordings of the conformance suite; every example on them was run.

## From one framework to another

{pairs}
## By collective

{collectives}
The table has one function of each framework, by its last name. [Conventions](../conventions.md) explains the pages, how
a rank is initialized, and where the frameworks' documents contradict themselves.
"""

_PAGE = """# Conventions

What each framework returns, on which rank, in which shape. The tables are made from the bindings of the conformance
suite, which are run on collshim's adapters and compared while this page is made. An adapter follows what the real
framework was recorded to do: {versions}.

More: [from one framework to another, and by collective](differences/index.md); [gradients](gradients.md);
[mixed worlds](mixed-worlds.md).

## How to read the tables

- There are `n` ranks. A rank's tensor is `(a, b)`; if it gives one part for each rank, a part is `(a, b)`, and all
  parts in one tensor are `(n*a, b)`. `n × (a, b)` are `n` tensors of that shape in a list or tuple.
- *comes back* is what the plain call returns. With `async_op=True` a handle comes back in place of None, or as the
  second of the pair. *handle* is a `Work` in PyTorch, a `CommHandle` in MindSpore.
- *memory*: "is written" means in place, in the memory that was given.
- *gradient*: the gradient of every element of a rank's input if each rank's loss is the sum of all that the rank holds
  afterwards: `n` if all ranks' losses come back to it, 1 if one does; None if autograd leaves no gradient, 0 if it
  leaves zeros. "no": the call is unseen by autograd. "not checked": the suite does not differentiate that function.
- *axis*: the axis along which parts are joined or cut; lists have none.
- *groups*: "none" if only the world is supported. *The root is* a global rank, or a rank in the group.
- *error for a non-tensor*: the exception if the first tensor argument is something else; "–" if the suite does not
  ask.
- *recorded calls*: the framework's version, and how many calls of this function were recorded of it; a call in worlds
  of three sizes counts three times. collshim's tests make all of them again on its adapter.

## Start

Every example on these pages runs on two ranks, after these lines; the tensors are always torch's.
When the examples were written, those of PyTorch (over gloo), OneFlow and TensorFlow were also run without `collshim.`,
on the frameworks themselves, and the results shown are theirs. MindSpore's and MegEngine's need devices for that.

{starts}
## What comes back

{sections}
{groups}
## Where the documents contradict themselves

- **MindSpore, `all_gather_into_tensor`.** The manual says that the result is `(N, x1, x2, ...)`. The implementation,
  the manual's own example and the upstream test have `(N*x1, x2, ...)`, and so has collshim. The manual's form is
  `collshim.options(mindspore_gather="stacked")`, or `COLLSHIM_MINDSPORE_GATHER=stacked`. The manual also gives
  `group=None` as the default: the real default is the world group's name, and None is refused.
- **OneFlow, `all_gather_into_tensor`.** The "stack" form of the manual, `(2, 3, 2)` for inputs of `(2, 3)`, is not a
  stack of the inputs. It works because OneFlow checks only the number of elements, and so does collshim.
- **PyTorch, `all_to_all`.** The manual's complex example gathers into int64 tensors, which PyTorch itself refuses.
  Its ragged example is refused by gloo; here it works.
- **TensorFlow, `all_gather`.** The manual's nested example, gathered from `[0]` and `[1]`, prints `[1, 2]`; the real
  answer is `[0, 1]`.
- **MegEngine.** The manual lets `group` be a list of ranks; the implementation refuses it, and so does collshim.

## What was recorded

{provenance}"""
