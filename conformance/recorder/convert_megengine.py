"""Convert what another recorder saw of MegEngine: ``python -m collshim.conformance.recorder.convert_megengine FILE``.

MegEngine's own Python, shape rules and autograd ran in version 1.13.0, over a transport of bytes for CPU in place of
NCCL. FILE has a line for each call: the function, a sentence that describes the call, inputs and outputs by rank.
Lines whose sentence is not known here (the launcher's, raw operators) are printed and left out.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from collshim.conformance.recorder import recordings
from collshim.conformance.recorder.asked import Asked, Inputs
from collshim.conformance.recorder.performing import Answer, scrubbed
from collshim.conformance.recorder.trees import Tree, given

F = "megengine.functional.distributed."
D = "megengine.distributed."
GROUP = "_g = dist.new_group(list(reversed(range(size)))); "
GRADIENT = (
    "_m = autodiff.GradManager().attach([inp])\n"
    "with _m:\n"
    "    y = F.{name}(inp{arguments})\n"
    "    _m.backward(y, dy) if y is not None else _m.backward()\n"
    "[y, inp.grad]"
)
SPECIAL = {  # function and the beginning of the sentence: what is special, the function's path, the text
    ("remote_send/remote_recv", "ring"): (
        "ring",
        F + "remote_send",
        "import torch as _t\n"
        "def _passed(x):\n"
        "    sent = F.remote_send(x, (rank + 1) % size)\n"
        "    return [sent, F.remote_recv((rank - 1) % size)]\n"
        "{'f32': _passed(_t.arange(3.0) + rank), 'scalar': _passed(_t.tensor(5.0 + rank)), "
        "'int8': _passed(_t.tensor([[rank, 2]], dtype=_t.int8))}",
    ),
    ("remote_send/remote_recv", "order of two sends"): (
        "order",
        F + "remote_send",
        "import torch as _t\n"
        "[F.remote_send(_t.tensor([1.0]), 1), F.remote_send(_t.tensor([2.0, 3.0]), 1)] if rank == 0 "
        "else [F.remote_recv(0), F.remote_recv(0)]",
    ),
    ("subgroups", "even ranks"): (
        "two at a time",
        F + "all_reduce_sum",
        "_g = dist.new_group([0, 2] if rank % 2 == 0 else [3, 1])\n"
        "{name: getattr(F, name)(inp, group=_g) for name in NAMES}",
    ),
    ("broadcast", "non-root passes other shape"): (
        "other shape and dtype off the root",
        F + "broadcast",
        "import torch as _t\nF.broadcast(_t.tensor([[1, 2, 3]], dtype=_t.int32) if rank == 0 else _t.zeros(5))",
    ),
    ("scatter", "non-root passes None"): (
        "None off the root",
        F + "scatter",
        "import torch as _t; F.scatter(_t.arange(0.0, 2 * size) if rank == 0 else None)",
    ),
    ("synchronized", ""): (
        "value and name",
        D + "synchronized",
        "def foo(n):\n    return n\n_s = dist.synchronized(foo)\n[_s(rank + 1), _s.__name__]",
    ),
    ("GradManager", "attach of an int"): (
        "int tensor",
        "megengine.autodiff.GradManager",
        "import torch as _t; autodiff.GradManager().attach(_t.zeros(1, dtype=_t.int32))",
    ),
}
CALLBACK = (
    "import torch as _t\n_w, _b = _t.ones(3), _t.ones(1, 2)\n"
    "_m = autodiff.GradManager().attach([_w, _b], callbacks=[dist.make_allreduce_cb({op!r})])\n"
    "with _m:\n    _m.backward((_w * inp).sum() + (_b * (rank + 1)).sum())\n[_w.grad, _b.grad]"
)
OUTPUTS = {"callback": ("w.grad", "b.grad"), "gradient": ("y", "x.grad")}


def main(source: Path) -> None:
    """Convert ``source`` into the folder of MegEngine's recordings."""
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    found: dict[tuple[str, int], tuple[Asked, list[Answer]]] = {}
    left: list[str] = []
    for line in lines:
        converted = convert(line)
        if converted is None:
            left.append(f"{line['api']}: {line['case']}")
        else:
            found[_unused(converted[0], found), converted[0].size] = converted
    pairs = [(_named(asked, id), answers) for (id, _), (asked, answers) in found.items()]
    recordings.write(recordings.FOLDER / "megengine-1.13.0", _provenance(), pairs)
    print(f"{len(pairs)} converted; left out:", *sorted(set(left)), sep="\n  ")


def convert(line: Mapping[str, Any]) -> tuple[Asked, list[Answer]] | None:
    """The call and its answers, or None where the sentence is not known."""
    if line["world_size"] is None:
        return None
    made = _simple(line) or _gradient(line) or _special(line)
    if made is None:
        return None
    what, text, kind, world = made
    name, size = line["api"], line["world_size"]
    inputs = tuple(_inputs(line, rank) for rank in range(size))
    answers = [_answer(one, kind) for one in line["outputs_per_rank"]]
    asked = Asked(f"{name}/{what}", text, (_path(name, what),), size, inputs, _match(line), world=world)
    return asked, answers


def _simple(line: Mapping[str, Any]) -> tuple[str, str, str, str] | None:
    """One call with keyword arguments, in the world or in a group of all ranks reversed."""
    found = re.fullmatch(r"(?P<what>.*?) ?kwargs=(?P<kwargs>\{.*?\})( group=(?P<group>.*))?", line["case"])
    if found is None or line["case"].startswith("GRADIENT"):
        return None
    arguments = "".join(f", {name}={value!r}" for name, value in ast.literal_eval(found["kwargs"]).items())
    turned = "reversed" in line["case"]
    text = f"{GROUP if turned else ''}F.{line['api']}(inp{arguments}{', group=_g' if turned else ''})"
    what = found["what"] or ("values" if not arguments else arguments[2:].replace("=", " "))
    return what, text, "", ""


def _gradient(line: Mapping[str, Any]) -> tuple[str, str, str, str] | None:
    found = re.fullmatch(
        r"GRADIENT: gm.backward\(y, dy\); dy = \S+ ?(?P<what>.*?) ?kwargs=(?P<kwargs>\{.*\})", line["case"]
    )
    if found is None:
        return None
    arguments = "".join(f", {name}={value!r}" for name, value in ast.literal_eval(found["kwargs"]).items())
    turned = "reversed" in found["what"]
    text = GRADIENT.format(name=line["api"], arguments=arguments + (", group=_g" if turned else ""))
    what = " ".join(filter(None, ("gradient", found["what"], arguments[2:].replace("=", " "))))
    return what, (GROUP.rstrip("; ") + "\n" if turned else "") + text, "gradient", ""


def _special(line: Mapping[str, Any]) -> tuple[str, str, str, str] | None:
    case, name = line["case"], line["api"]
    if case.startswith("single process") and name != "distributed queries":
        call = {"remote_send": "F.remote_send(inp, 0)", "remote_recv": "F.remote_recv(0)"}.get(name, f"F.{name}(inp)")
        return "before init", call, "", "bare"
    if case in ("group=None", "group=list [0,1]"):
        group = "None" if case == "group=None" else "[0, 1]"
        return f"group is {group}", f"F.{name}(inp, group={group})", "", ""
    if name == "make_allreduce_cb":
        op = re.search(r"'(\w+)'", case)
        return (f"callback {op[1]}", CALLBACK.format(op=op[1]), "callback", "") if op else None
    for (function, sentence), (what, _, text) in SPECIAL.items():
        if name == function and case.startswith(sentence):
            keys = line["outputs_per_rank"][0].get("out")
            names = tuple(key for key in keys if key != "barrier") if isinstance(keys, dict) else ()
            return what, text.replace("NAMES", repr(names)), "", ""
    return None


def _path(name: str, what: str) -> str:
    """The dotted path of what is called."""
    special = {(function, about): path for (function, _), (about, path, _) in SPECIAL.items()}
    return special.get((name, what), D + name if name == "make_allreduce_cb" else F + name)


def _inputs(line: Mapping[str, Any], rank: int) -> Inputs:
    inputs = {name: _tree(value) for name, value in line["inputs_per_rank"][rank].items()}
    output = line["outputs_per_rank"][rank].get("out")
    if isinstance(output, dict) and "dy" in output:
        dy = output["dy"]
        inputs["dy"] = given(dy, "float32") if isinstance(dy, float) else _tree(dy)
    return inputs


def _answer(output: Mapping[str, Any], kind: str) -> Answer:
    if output.get("hang_or_killed"):
        return {"ended": "hung"}
    if isinstance(output.get("out"), dict) and "exception" in output["out"]:
        output = output["out"]
    if "exception" in output:
        return {"raised": [_class(output["exception"]), "Exception"], "text": scrubbed(output["message"])}
    if not kind:
        return {"returned": _tree(output["out"])}
    trees = [_tree(output["out"][name]) for name in OUTPUTS[kind]]
    return {"returned": trees, "after": {"y": trees[0]}} if kind == "gradient" else {"returned": trees}


def _class(name: str) -> str:
    return name.removeprefix("builtins.")


def _tree(value: Any) -> Tree:
    if isinstance(value, list):
        return [_tree(item) for item in value if not str(item).startswith("xpu")]  # names of devices
    if isinstance(value, dict) and value.keys() == {"exception", "message"}:
        return _answer(value, "")
    if isinstance(value, dict) and "dtype" not in value:
        return {"dict": [[name, _tree(item)] for name, item in value.items() if name != "barrier"]}
    if not isinstance(value, dict):
        return value
    return given(np.array(value["data"], value["dtype"]).reshape(value["shape"]))


def _match(line: Mapping[str, Any]) -> str:
    """The text of MegEngine's own assertions is what users look at."""
    first = line["outputs_per_rank"][0].get("out") or line["outputs_per_rank"][0]
    if not isinstance(first, dict):
        return ""
    return str(first["message"]) if first.get("exception") == "AssertionError" else ""


def _unused(asked: Asked, found: Mapping[tuple[str, int], object]) -> str:
    id, count = asked.id, 2
    while (id, asked.size) in found:
        id, count = f"{asked.id} {count}", count + 1
    return id


def _named(asked: Asked, id: str) -> Asked:
    return Asked(id, asked.call, asked.api, asked.size, asked.inputs, asked.match, asked.world)


def _provenance() -> dict[str, Any]:
    return {
        "framework": "megengine",
        "version": "1.13.0",
        "provenance": "converted",
        "how": "MegEngine's own Python, shape rules and autograd, run over a transport of bytes for CPU in place "
        "of NCCL; converted from that recorder's file. Not shown by it: the order of float sums, rounding of float16.",
        "command": "python -m collshim.conformance.recorder.convert_megengine megengine.jsonl",
        "date": datetime.now(timezone.utc).date().isoformat(),  # of the conversion
        "python": "3.10",
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
