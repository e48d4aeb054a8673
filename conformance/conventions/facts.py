"""The behaviour of one spelling of a collective, read from its binding after the adapter was checked against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collshim.conformance import reference
from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.answers import Answer, Tree, leaves
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.invalid import NO_ARRAY
from collshim.conformance.bindings.memory import HOLDS, KEEPS, SHARES
from collshim.conformance.bindings.messages import Ring
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.cases import OBJECTS, RINGS, ROOTED, Case
from collshim.conformance.conventions.called import PREFIX, call_of, watched
from collshim.conformance.conventions.evidence import Evidence, of_paths
from collshim.conformance.conventions.gradient import gradient
from collshim.conformance.conventions.ran import calls, plain
from collshim.conformance.conventions.shapes import is_array, kind_of_tree, shape_of
from collshim.conformance.missing import is_missing
from collshim.conformance.values import REDUCTIONS

GROUPS = {None: "none", "sorted": "in sorted order", "ordered": "in any order"}
LENGTHS = ("all_gather", "all_to_all")
JOINED = ("all_gather", "gather", "scatter", "reduce_scatter", "all_to_all")
MEMORY = {
    (KEEPS, True): "{result} is written",
    (KEEPS, False): "{result} is rebound to new memory",
    (HOLDS, True): "the list's tensors are written",
    (HOLDS, False): "the list's entries are replaced",
    (SHARES["all_to_all"], True): "and the rank's own part shares memory with its input",
    (SHARES["scatter"], True): "on the root it shares memory with its part",
}


@dataclass(frozen=True)
class Facts:
    """One spelling of one collective.

    Attributes:
        binding: the spelling.
        missing: whether collshim does not have it yet, so that it was not run.
        call: the call as text; only the name if it is missing.
        evidence: its recordings.
        rows: a few words on each subject, in the order in which they are shown.
    """

    binding: Binding
    missing: bool
    call: str
    evidence: Evidence
    rows: dict[str, str]

    @property
    def framework(self) -> str:
        """The framework of the spelling."""
        return self.binding.framework.name


def of_collective(collective: str) -> list[Facts]:
    """Return every spelling of a collective, except asynchronous ones, which are described with the others."""
    return [_facts(one) for one in bindings() if one.collective == collective and "async" not in one.form]


def _facts(binding: Binding) -> Facts:
    missing = is_missing(PREFIX + binding.path)
    call = binding.path if missing else call_of(binding, calls()[binding.name])
    evidence = of_paths(binding.framework.name, *watched(binding))
    return Facts(binding, missing, call, evidence, _rows(binding, call))


def _rows(binding: Binding, call: str) -> dict[str, str]:
    asked = plain(binding)
    answers = [binding.expected(asked, rank, reference) for rank in range(asked.size)]
    rows = {}
    if binding.collective not in (*OBJECTS, "barrier"):
        rows["each rank passes"] = shape_of(_input_of(binding, asked, answers[asked.root]))
    rows["returns"] = _by_rank(asked, [_returned_text(answer) for answer in answers])
    if binding.collective != "barrier":
        rows["the result is"] = _place(binding, call)
        if binding.collective not in OBJECTS:
            _add_array_rows(rows, binding, answers, call)
    if binding.collective in ROOTED:
        rows["the root is"] = _root(binding)
    rows["groups"] = GROUPS[binding.admits.groups]
    rows["asynchronous"] = "`async_op=True`" if _has_async(binding) else "by its name" if ".isend" in call else "no"
    return rows | _refusal(binding)


def _add_array_rows(rows: dict[str, str], binding: Binding, answers: Sequence[Answer], call: str) -> None:
    asked, admits = plain(binding), binding.admits
    held = [binding.held(answer) for answer in answers]
    rows["its shape"] = shape_of(held[asked.root])
    if asked.collective in ("reduce", "gather"):
        rows["on other ranks"] = _off_root(held, asked)
    rows["memory"] = _memory(binding, answers[asked.root], call)
    if asked.collective not in RINGS:
        rows["gradient"] = gradient(binding, asked)
    if asked.collective in REDUCTIONS:
        rows["reductions"] = ", ".join(admits.reduce_ops)
    if asked.collective in LENGTHS:
        rows["unequal lengths"] = "yes" if admits.ragged else "no"
    if asked.collective in JOINED:
        listed = "×" in rows["each rank passes"] + rows["its shape"]
        rows["axis"] = "any" if admits.axes or admits.split_axes else "none: a list" if listed else "0"


def _input_of(binding: Binding, asked: Case, answer: Answer) -> Tree:
    """Return the input of a rank; of the root, if there is one."""
    if isinstance(binding, Spelling):
        return binding.source(asked, asked.root)
    others = {name: held for name, held in answer.arguments.items() if not name.startswith("the ")}
    inputs = [held for name, held in others.items() if name not in (binding.result, "received")]
    return inputs[0] if inputs else answer.arguments.get(binding.result)


def _returned_text(answer: Answer) -> str:
    if not (isinstance(answer.returned, dict) and answer.returned.keys() == {"send", "recv"}):
        return kind_of_tree(answer.returned)
    sent, received = (_first_call(answer.returned[name]) for name in ("send", "recv"))
    received_text = "the sender's rank" if isinstance(received, int) and received else kind_of_tree(received)
    return f"send: {kind_of_tree(sent)}; recv: {received_text}"


def _first_call(returned: Tree) -> Tree:
    """Return the value of one call if a rank makes several."""
    return returned[0] if isinstance(returned, list) else returned


def _by_rank(asked: Case, texts: Sequence[str]) -> str:
    """Return one text, or the root's and the others'; in a ring, the text of a rank whose sender is not rank 0."""
    if asked.collective in RINGS or len(set(texts)) == 1:
        return texts[0]
    return f"root: {texts[asked.root]}; others: {texts[_other(asked)]}"


def _other(asked: Case) -> int:
    return (asked.root + 1) % asked.size


def _place(binding: Binding, call: str) -> str:
    if isinstance(binding, Ring):
        return "in the tensor passed" if binding.fills else "the return value"
    if binding.collective in RINGS:
        return "in the list passed"
    return "the return value" if binding.result == "returned" else f"in {_output(binding, call)}"


def _output(binding: Binding, call: str) -> str:
    """Return the parameter that the result is written to: the first, if the binding knows it by another name."""
    parameters = call.partition("(")[2].rstrip(")").split(", ")
    return f"`{binding.result if binding.result in parameters or not parameters[0] else parameters[0]}`"


def _off_root(held: Sequence[Tree], asked: Case) -> str:
    """Return what a rank without a result holds."""
    other = held[_other(asked)]
    arrays = [leaf for leaf in leaves(other) if is_array(leaf)]
    if not arrays:
        return "None"
    if not isinstance(arrays[0], np.ndarray):
        return f"{shape_of(other)} of arbitrary values"
    if all(np.all(array == 0) for array in arrays):
        return f"zeros, {shape_of(other)}"
    same = np.array_equal(arrays[0], leaves(held[asked.root])[0])
    return "the same as on the root" if same else "unchanged"


def _memory(binding: Binding, answer: Answer, call: str) -> str:
    result = _output(binding, call)
    facts = {fact.replace(binding.result, "{}", 1): holds for fact, holds in answer.facts.items()}
    texts = [MEMORY[fact, holds] for fact, holds in facts.items() if (fact, holds) in MEMORY]
    if texts:
        return ", ".join(texts).format(result=result)
    if isinstance(binding, Ring):
        return "the tensor passed is written" if binding.fills else "nothing is written"
    return "nothing is written" if binding.result == "returned" else f"{result} is written"


def _root(binding: Binding) -> str:
    """Describe how a root is passed: as a global rank, or as a rank in the group."""
    if not binding.admits.roots:
        return "the group's first rank"
    is_in_group = isinstance(binding, Spelling) and "root in the group" in binding.takes.values()
    return "a rank in the group" if is_in_group else "a global rank"


def _has_async(binding: Binding) -> bool:
    return any(one.path == binding.path and "async" in one.form for one in bindings())


def _refusal(binding: Binding) -> dict[str, str]:
    if binding.collective in (*RINGS, *OBJECTS, "barrier"):
        return {}
    found = [one.error for one in binding.refused if one.changes.get("fault") == NO_ARRAY]
    return {"error for a non-tensor": f"`{found[0]}`" if found else ""}
