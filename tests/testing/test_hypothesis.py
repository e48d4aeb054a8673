"""Tests of Hypothesis on ranks that draw inside the test: all ranks draw the same, once."""

from __future__ import annotations

import pytest

from tests.testing.conftest import Ran

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.processes

KINDS = ("threads", "processes")
FEW = "from hypothesis import assume, event, given, note, settings, strategies as st, target\n"


def drawing(kind: str, body: str) -> str:
    """Return the source of a test that draws."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return (
        f"{FEW}@pytest.mark.ranks(2, processes={kind == 'processes'})\n"
        f"@settings(max_examples=20, database=None)\n@given(data=st.data())\n"
        f"def test_draws(rank, comm, data):\n{lines}\n"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_all_ranks_draw_the_same(ran_apart: Ran, kind: str) -> None:
    result = ran_apart(
        drawing(
            kind,
            """
n = data.draw(st.integers(1, 9), label="n")
drawn = [n, data.draw(st.lists(st.floats(allow_nan=False), min_size=n, max_size=n))]
drawn += [data.draw(st.text(max_size=3)), data.draw(st.binary(max_size=3)), data.draw(st.permutations(range(4)))]
drawn += [data.draw(st.dictionaries(st.integers(), st.booleans().filter(bool), max_size=2))]
everywhere = comm.all_gather_object(drawn).wait()
assert everywhere == [drawn, drawn]
event("drawn"); target(float(n))
""",
        ),
        "--hypothesis-show-statistics",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*drawn*"])


@pytest.mark.parametrize("kind", KINDS)
def test_slow_draws_are_no_failure(ran_apart: Ran, kind: str) -> None:
    slow = "import time\nvalue = data.draw(st.integers().map(lambda number: (number, time.sleep(0.15))))"
    ran_apart(drawing(kind, slow)).assert_outcomes(passed=1)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_shrunk_and_printed_once(ran_apart: Ran, kind: str) -> None:
    result = ran_apart(
        drawing(
            kind,
            """
value = data.draw(st.integers(0, 30), label="value")
note("of all")
note(f"of rank {rank}")
if rank == 1: assert value < 17
""",
        )
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *Failing test case: test_draws(*", "E *rank=<each rank's own>,*"])
    result.stdout.fnmatch_lines(
        [
            "E *Draw 1 (value): 17",
            "E *of all",
            "E *rank 0: of rank 0",
            "E *rank 1: of rank 1",
            "> rank 1 failed: *17 < 17",
        ]
    )
    assert str(result.stdout).count("Draw 1") == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "data.draw(st.integers() if rank else st.booleans())",
            "*Mismatch*rank 0 makes draw 1 from booleans() at test_*.py:10; rank 1 makes draw 1 from integers() at *",
        ),
        (
            "if rank: data.draw(st.integers())",
            "*Mismatch*rank 0 ended after 0 draws; rank 1 makes draw 1 from integers() at test_*.py:10",
        ),
    ],
)
def test_ranks_that_draw_differently_are_told(ran_apart: Ran, kind: str, body: str, text: str) -> None:
    result = ran_apart(drawing(kind, body))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([text])


def test_strategy_that_depends_on_the_rank_is_told(ran: Ran) -> None:
    result = ran(
        drawing(
            "threads",
            """
@st.composite
def made(draw): return draw(st.integers() if rank else st.booleans())
data.draw(made())
""",
        )
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*rank 1 makes draw 1 from made() at * from other choices than rank 0: the strategy must *"]
    )


def test_call_in_the_place_of_a_draw_is_told(ran: Ran) -> None:
    result = ran(drawing("threads", "data.draw(st.integers()) if rank else comm.barrier().wait()"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*MismatchError: barrier: ranks disagree on op*", "*rank 1: all_gather_object*:10"])


@pytest.mark.parametrize("kind", KINDS)
def test_examples_may_be_given_up_on_ranks(ran_apart: Ran, kind: str) -> None:
    result = ran_apart(
        drawing(
            kind,
            """
value = data.draw(st.integers(0, 9).filter(lambda value: value != 3))
if rank == 1: assume(value != 5)
comm.barrier().wait()
assert value not in (3, 5)
""",
        )
    )
    result.assert_outcomes(passed=1)


def test_error_of_a_strategy_is_shown(ran: Ran) -> None:
    result = ran(drawing("threads", "data.draw(st.integers().map(lambda value: 1 // (value > 5)))"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *ZeroDivisionError*", "E *while generating 'Draw 1'*"])
