"""The marker ``ranks``: the body runs on every rank, with the fixtures that people expect."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.testing.conftest import Ran

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.threads


def passes(ran: Ran, source: str, count: int = 1, **more: str) -> None:
    result = ran(source, **more)
    result.assert_outcomes(passed=count)


def test_body_runs_on_every_rank(ran: Ran) -> None:
    passes(
        ran,
        """
        seen = []
        @pytest.mark.ranks(3)
        def test_ranks(rank, world_size, comm):
            seen.append((rank, world_size, comm.rank, comm.size))
        def test_after():
            assert sorted(seen) == [(0, 3, 0, 3), (1, 3, 1, 3), (2, 3, 2, 3)]
        """,
        2,
    )


def test_each_size_is_a_test(ran: Ran) -> None:
    result = ran(
        """
        @pytest.mark.ranks(1, 2, 4)
        def test_total(rank, world_size):
            total = torch.tensor([rank])
            dist.all_reduce(total)
            assert total.item() == world_size * (world_size - 1) // 2
        """,
        "-v",
    )
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines([f"*::test_total?{size}-ranks? PASSED*" for size in (1, 2, 4)])


def test_marker_without_a_size_takes_the_default(ran: Ran) -> None:
    passes(ran, "@pytest.mark.ranks\ndef test_two(world_size): assert world_size == 2")


def test_project_may_set_the_default(ran: Ran) -> None:
    passes(
        ran,
        "@pytest.mark.ranks\ndef test_sizes(comm): assert comm.size in (3, 4)",
        2,
        conftest="""
        @pytest.fixture(scope="module", params=[Ranks(3), Ranks(4)], ids=str)
        def collshim_world(request): return request.param
        """,
    )


def test_marker_of_a_class_or_a_module_counts(ran: Ran) -> None:
    passes(
        ran,
        """
        pytestmark = pytest.mark.ranks(2)
        def test_of_module(comm): assert comm.size == 2
        @pytest.mark.ranks(3)
        class TestClass:
            def test_of_class(self, comm): assert comm.size == 3
        """,
        2,
    )


def test_other_fixtures_are_made_once(ran: Ran) -> None:
    passes(
        ran,
        """
        made, ended = [], []
        @pytest.fixture
        def once():
            made.append(threading.current_thread().name)
            yield made
            ended.append(threading.current_thread().name)
        @pytest.mark.ranks(3)
        def test_once(once): assert once is made and len(once) == 1
        def test_after(): assert made == ended == ["MainThread"]
        """,
        2,
    )


def test_fixture_that_asks_for_the_rank_is_made_by_each(ran: Ran) -> None:
    passes(
        ran,
        """
        ended = []
        @pytest.fixture
        def base(): return 10
        @pytest.fixture
        def mine(rank, comm, base):
            total = comm.all_reduce(torch.tensor(rank)).wait().item()
            yield base + rank, total
            comm.barrier().wait()
            ended.append(rank)
        @pytest.fixture
        def of_mine(mine, request):
            request.addfinalizer(lambda: ended.append("of mine"))
            return mine[0], request.getfixturevalue("base")
        @pytest.mark.ranks(3)
        def test_mine(rank, mine, of_mine): assert (mine, of_mine) == ((10 + rank, 3), (10 + rank, 10))
        def test_after(): assert sorted(ended, key=str) == [0, 1, 2] + ["of mine"] * 3
        """,
        2,
    )


def test_fixture_of_a_rank_may_have_parameters_and_a_class(ran: Ran) -> None:
    passes(
        ran,
        """
        class TestClass:
            base = 7
            @pytest.fixture(params=[1, 2])
            def mine(self, rank, request): return self.base * request.param + rank
            @pytest.mark.ranks(2)
            def test_mine(self, rank, mine): assert mine - rank in (7, 14)
        """,
        2,
    )


def test_autouse_fixture_of_a_rank_is_made(ran: Ran) -> None:
    passes(
        ran,
        """
        made = []
        @pytest.fixture(autouse=True)
        def each(rank): made.append(rank)
        @pytest.mark.ranks(2)
        def test_made(comm):
            comm.barrier().wait()
            assert sorted(made) == [0, 1]
        """,
    )


def test_fixtures_and_parameters_of_the_project_come_first(ran: Ran) -> None:
    passes(
        ran,
        """
        @pytest.fixture
        def comm(): return "the project's"
        @pytest.mark.ranks(2)
        @pytest.mark.parametrize("rank_seed", [5])
        def test_own(rank, comm, rank_seed): assert (rank in (0, 1), comm, rank_seed) == (True, "the project's", 5)
        """,
    )


def test_wider_fixture_cannot_ask_for_the_rank(ran: Ran) -> None:
    result = ran(
        """
        @pytest.fixture(scope="module")
        def mine(rank): return rank
        @pytest.mark.ranks(2)
        def test_mine(mine): pass
        """
    )
    result.stdout.fnmatch_lines(["*fixture 'mine' belongs to a rank and has scope 'module', should be 'function'*"])


def test_seeds_differ_between_ranks_or_are_shared(ran: Ran) -> None:
    passes(
        ran,
        """
        @pytest.mark.ranks(3)
        def test_seeds(comm, rank_seed, shared_seed):
            assert len(set(comm.all_gather_object(rank_seed).wait())) == 3
            assert len(set(comm.all_gather_object(shared_seed).wait())) == 1
        """,
    )


def test_parameters_temporary_folders_and_async_tests_work(ran: Ran) -> None:
    passes(
        ran,
        """
        import asyncio
        @pytest.mark.ranks(2)
        @pytest.mark.parametrize("n", [1, 2])
        async def test_all(comm, n, tmp_path):
            await asyncio.sleep(0)
            (tmp_path / str(comm.rank)).write_text(str(n))
            comm.barrier().wait()
            assert [path.read_text() for path in tmp_path.iterdir()] == [str(n)] * 2
        """,
        2,
    )


def test_all_ranks_get_what_hypothesis_draws(ran: Ran) -> None:
    passes(
        ran,
        """
        from hypothesis import given, settings, strategies as st
        examples = []
        @pytest.mark.ranks(2)
        @settings(max_examples=15, database=None)
        @given(values=st.lists(st.integers(-9, 9), min_size=1))
        def test_sum(rank, values):
            total = torch.tensor(values)
            dist.all_reduce(total)
            assert total.tolist() == [2 * value for value in values]
            if rank == 0: examples.append(values)
        def test_after(): assert len(examples) >= 10
        """,
        2,
    )


def test_hypothesis_shrinks_a_failure_on_ranks(ran: Ran) -> None:
    result = ran(
        """
        from hypothesis import given, settings, strategies as st
        @pytest.mark.ranks(2)
        @settings(max_examples=50, database=None)
        @given(value=st.integers(0, 1000))
        def test_small(rank, value):
            if rank == 1: assert value < 10
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*value=10*"])


def test_default_group_of_torch_exists_on_each_rank(ran: Ran) -> None:
    passes(
        ran,
        """
        @pytest.mark.ranks(2)
        def test_gradients(rank):
            assert (dist.get_rank(), dist.get_world_size()) == (rank, 2)
            torch.manual_seed(0)
            layer = torch.nn.Linear(2, 1)
            model = torch.nn.parallel.DistributedDataParallel(layer)
            model(torch.full((4, 2), rank + 1.0)).sum().backward()
            assert layer.weight.grad.tolist() == [[6.0, 6.0]]
        @pytest.mark.ranks(2, default_group=False)
        def test_none(): assert not dist.is_initialized()
        @pytest.mark.ranks(2)
        def test_destroyed(): dist.destroy_process_group()
        """,
        3,
    )


@pytest.mark.processes
def test_sharded_modules_and_tensors_run_on_threads(ran_apart: Ran) -> None:
    passes(
        ran_apart,
        """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor import Shard, distribute_tensor
        @pytest.mark.ranks(2)
        def test_sharded():
            torch.manual_seed(0)
            model = torch.nn.Linear(4, 4)
            fully_shard(model)
            model(torch.ones(2, 4)).sum().backward()
            assert model.weight.grad.full_tensor().tolist() == [[2.0] * 4] * 4
        @pytest.mark.ranks(2)
        def test_tensor():
            mesh = init_device_mesh("cpu", (2,))
            tensor = distribute_tensor(torch.arange(8.0).view(4, 2), mesh, [Shard(0)])
            assert (tensor.to_local().shape, tensor.sum().full_tensor().item()) == ((2, 2), 28.0)
        """,
        2,
    )


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("ranks(0)", "ranks: size is 0, should be at least 1"),
        ('ranks("4")', "ranks: size is '4', should be an int of at least 1"),
        ("ranks(2, process=True)", "ranks: there is no argument 'process', should be one of processes, timeout, *"),
        ("ranks(processes=True)", "ranks: processes needs the number of ranks before it: ranks(4, ...)"),
        ("ranks(2, processes=True, clock='jumping')", "ranks: clock is 'jumping' for processes, should be 'system'*"),
        ("ranks(2, timeout=0)", "ranks: timeout is 0, should be more than 0 seconds"),
        ('ranks(2, timeout="1")', "ranks: timeout is '1', should be a number of seconds"),
    ],
)
def test_wrong_marker_is_refused(ran: Ran, marker: str, text: str) -> None:
    result = ran(f"@pytest.mark.{marker}\ndef test_ranks(): pass")
    result.stdout.fnmatch_lines([f"*test_ranks: {text.replace('[', '[[]')}*"])


def test_fixture_of_a_rank_needs_the_marker(ran: Ran) -> None:
    result = ran("def test_ranks(rank): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the fixture 'rank' is for tests with @pytest.mark.ranks, and for their fixtures"])


def test_plugin_imports_nothing_for_other_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\ndef test_modules(): assert not {'torch', 'numpy', 'collshim'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-m", "pytest", "-q"], capture_output=True, text=True, timeout=200)
    assert "1 passed" in done.stdout, done.stdout


def test_deadlines_pass_at_once_on_a_jumping_clock(ran: Ran) -> None:
    passes(
        ran,
        """
        @pytest.mark.ranks(2, clock="jumping", timeout=30.0)
        def test_deadlock(rank, comm):
            with pytest.raises(collshim.CommunicationError):
                comm.recv(1 - rank, like=torch.zeros(1)).wait(3600.0)
        """,
    )
