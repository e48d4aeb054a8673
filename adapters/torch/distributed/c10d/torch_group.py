"""The methods that torch's modules call on a group besides its collectives: devices, options, timeouts, splits, end.

Names and meanings are those of ``ProcessGroup`` and ``Backend`` of torch 2.13; torch uses a group as both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch._C._distributed_c10d
from torch.distributed import PrefixStore, Store, default_pg_timeout, destroy_process_group

from collshim.adapting.refusing import refuse
from collshim.together import Together
from collshim.torch.distributed.c10d import operators
from collshim.torch.distributed.c10d.hooked import Carrier, may_have_hooks
from collshim.torch.distributed.membership import ProcessGroup, require_membership
from collshim.torch.distributed.work import Work
from collshim.torch_release import HAS_PYTHON_BACKENDS
from collshim.world import peek

_bindings: Any = torch._C._distributed_c10d


class TorchGroup(ProcessGroup):
    """A ``ProcessGroup`` in the form that torch's modules expect; it is its own backend, for every device."""

    _coalescing: list[Work] | None = None

    supports_splitting = supports_shrinking = supports_time_estimate = _supports_time_estimate = False
    """torch reads these; so it does not connect groups early for ``device_id``, and makes groups by ``new_group``."""

    supports_coalescing = True
    supports_abort_hooks = supports_completion_hooks = supports_reconfigure = supports_window = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_hooked = may_have_hooks()
        if HAS_PYTHON_BACKENDS:
            carrier, kind = Carrier(self), torch.distributed.ProcessGroup.BackendType.CUSTOM
            for device in self._device_types:
                self._register_backend(device, kind, carrier)
            self._set_default_backend(kind)
            super()._set_group_name(self._name)
            super()._set_group_desc(self._desc)
        operators.install_functional()

    @property
    def _device_types(self) -> list[torch.device]:
        """The types of devices whose tensors it takes; ``torch.distributed.checkpoint.async_save`` requires the CPU."""
        kinds = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        return [torch.device(kind) for kind in kinds]

    def _get_backend(self, device: torch.device) -> TorchGroup:
        """Return the group itself, for every device; torch 2.14's ``batch_isend_irecv`` calls this."""
        return self

    def getBackendName(self) -> str:
        """Return "collshim": for the name of the backend that was passed, C++ would look for its own gloo."""
        return "collshim"

    _get_backend_name = getBackendName

    def _has_hooks(self) -> bool:
        """Return whether C++ calls hooks; torch 2.6 asks this when it destroys a group that is named "nccl"."""
        return HAS_PYTHON_BACKENDS and bool(super()._has_hooks())

    def _set_group_name(self, name: str) -> None:
        self._name = name
        if HAS_PYTHON_BACKENDS:
            super()._set_group_name(name)

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc
        if HAS_PYTHON_BACKENDS:
            super()._set_group_desc(desc)

    @property
    def options(self) -> Any:
        """The NCCL options passed for the group; without them, torch's options with only the timeout."""
        options = self.communicator.nccl_options
        if options is None:
            seconds = self.deadline
            timeout = default_pg_timeout if seconds is None else timedelta(seconds=seconds)
            options = _bindings.Backend.Options("collshim", timeout)
            options.group_name = self.group_name
            options.global_ranks_in_group = list(self.communicator.ranks)
        return options

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long a wait may take from now on."""
        self.deadline = timeout.total_seconds()

    _set_default_timeout = set_timeout

    def eager_connect_single_device(self, device: torch.device | None = None) -> None:
        """Do nothing: the ranks are already connected on the CPU, and NCCL connects them at the first call."""

    def boxed(self) -> Any:
        """Return the group as an object of TorchScript, which ``torch.ops.c10d`` accepts."""
        if not HAS_PYTHON_BACKENDS:
            operators.install()
        return super().boxed()

    def get_group_store(self) -> Store | None:
        """Return the group's part of the store that the ranks share; None after a split."""
        current_world = peek()
        store = None if current_world is None else current_world.store
        return None if store is None else PrefixStore(self.group_name, store)

    def _get_sequence_number_for_group(self) -> int:
        """Return the number of calls posted on the group."""
        return self.posted

    def _set_sequence_number_for_group(self) -> None:
        """Do nothing: the engine counts from the start."""

    def _start_coalescing(self, device: Any = None) -> None:
        """Collect the works posted until ``_end_coalescing``, to be waited for together."""
        self._coalescing = []

    def _end_coalescing(self, device: Any = None) -> Work:
        works, self._coalescing = self._coalescing or [], None
        outputs = [tensor for work in works for tensor in work._results()]
        return Work(Together([work._work for work in works]), self.deadline, outputs, order=self.order).keep()

    def _wait_for_pending_works(self) -> None:
        """Wait for the collectives that the program has not waited for; raise the first failure."""
        failure = self.order.settle(self.deadline)
        if failure is not None:
            raise failure

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> TorchGroup | None:
        """Return a group of some of the ranks, all of which call this; None on a rank outside it.

        Args:
            ranks: ranks in this group.
            timeout: how long a wait may take; None for this group's timeout.
            opts: None, or this group's ``options``.
            group_name, group_desc: None for texts that are derived from this group's.
        """
        if self.rank() not in ranks:
            return None
        if opts is not None and type(opts) is not _bindings.Backend.Options:
            refuse(RuntimeError, f"split_group: opts are {type(opts).__qualname__}, should be None or Backend.Options")
        part: Any = self.communicator.subgroup([*ranks], kept=True)
        deadline = self.deadline if timeout is None else timeout.total_seconds()
        name = group_name or f"{self.group_name}:split:{'_'.join(map(str, ranks))}"
        desc = group_desc or f"{self.group_desc}:split:{'_'.join(map(str, ranks))}"
        return require_membership().add(type(self)(part, self.backend, name, desc, deadline))

    def register_pre_hook(self, hook_id: int, hook: Callable[[Any], None]) -> None:
        """Run the hook before each call, since torch 2.15; see ``hooked``."""
        self._register("register_pre_hook", hook_id, hook)

    def register_post_hook(self, hook_id: int, hook: Callable[[Any], None]) -> None:
        """Run the hook after each call is posted, since torch 2.15; see ``hooked``."""
        self._register("register_post_hook", hook_id, hook)

    def _register(self, name: str, *arguments: Any) -> None:
        if not HAS_PYTHON_BACKENDS:
            _refuse(name, "use COLLSHIM_LOG, or Communicator.observe")
        self.is_hooked = True
        getattr(super(), name)(*arguments)

    def supports_tensor_alloc(self, device: torch.device) -> bool:
        """Return False, so that ``fully_shard`` takes its buffers from torch's allocator."""
        return False

    def get_backend(self, device: torch.device) -> TorchGroup:
        """Return the group itself: see ``_get_backend``."""
        return self

    @property
    def mem_allocator(self) -> NoReturn:
        """Refuse the call, as gloo does."""
        _refuse("mem_allocator", "use torch's allocator")

    def shutdown(self) -> None:
        """Leave the group, at the first call; torch then forgets it, even if this raises an error."""
        try:
            super().shutdown()
        except BaseException:
            if self in torch.distributed.distributed_c10d._world.pg_map:
                destroy_process_group(self)
            raise

    def abort(self) -> None:
        """Call ``shutdown``."""
        self.shutdown()


REFUSED = {
    "_add_ephemeral_timeout": "pass a timeout to the call, or set the group's",
    "_register_on_completion_hook": "use COLLSHIM_LOG, or torch.profiler",
    "allocate_tensor": "use torch.empty",
    "get_reconfigure_handle": "make a new group",
    "memory_stats": "use torch.cuda.memory_stats",
    "merge": "start all ranks together, and make groups of them",
    "merge_remote_group": "start all ranks together, and make groups of them",
    "new_window": "use send and recv",
    "reconfigure": "make a new group",
    "register_abort_hook": "catch the call's error",
    "register_mem_pool": "use torch's allocator",
    "resume": "make a new group",
    "shrink": "make a group of the remaining ranks",
    "split": "use split_group",
    "suspend": "destroy the group",
}
"""Methods of torch's groups and backends, up to 2.15, that a group refuses, and what to do instead.

If they were left to the class in C++, some would silently do nothing.
"""


def _refusing(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse_call(self: TorchGroup, *arguments: Any, **named: Any) -> NoReturn:
        _refuse(name, instead)

    refuse_call.__name__, refuse_call.__doc__ = name, f"Refuse the call: {instead}."
    return refuse_call


def _refuse(what: str, instead: str) -> NoReturn:
    refuse(RuntimeError, f"Backend collshim does not support {what}: {instead}")


for _name, _instead in REFUSED.items():
    setattr(TorchGroup, _name, _refusing(_name, _instead))
