"""``mindspore.context`` (source: MindSpore 2.10.0): this rank's settings.

Nothing is compiled: both modes run line by line. A device is only a name, and tensors are on the CPU. In the parallel
modes "stand_alone", "data_parallel" and "hybrid_parallel" the program calls the collectives itself. In the other modes
MindSpore's compiler would partition the operators; here they are refused when a Cell is called.
"""

from __future__ import annotations

import threading
from typing import Any

from collshim.adapting.devices import tell_of_cpu
from collshim.adapting.refusing import refuse

__all__ = [
    "COMPATIBLE",
    "GRAPH_MODE",
    "LAX",
    "PYNATIVE_MODE",
    "STRICT",
    "ParallelMode",
    "get_auto_parallel_context",
    "get_context",
    "get_ps_context",
    "reset_auto_parallel_context",
    "set_auto_parallel_context",
    "set_context",
    "set_device",
    "set_ps_context",
]
GRAPH_MODE, PYNATIVE_MODE = 0, 1
STRICT, COMPATIBLE, LAX = 0, 1, 2
_RANKS = 4096
_TARGETS = ("CPU", "GPU", "Ascend")


class ParallelMode:
    """The parallel modes."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = (STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL)


_DEFAULTS: dict[str, Any] = {
    "mode": PYNATIVE_MODE,
    "device_target": "CPU",
    "device_id": 0,
    "save_graphs": 0,
    "save_graphs_path": ".",
    "max_call_depth": 1000,
    "max_device_memory": 1024.0,
    "pynative_synchronize": False,
    "deterministic": "OFF",
    "enable_graph_kernel": False,
    "memory_optimize_level": 0,
    "jit_syntax_level": 2,
    "aoe_config": {},
    "aoe_tune_mode": "",
    "ascend_config": {},
    "check_bprop": False,
    "compile_cache_path": "",
    "conv_dgrad_algo": "normal",
    "conv_fprop_algo": "normal",
    "conv_wgrad_algo": "normal",
    "debug_level": 0,
    "disable_format_transform": False,
    "enable_compile_cache": None,
    "graph_kernel_flags": "",
    "enable_parallel_split": False,
    "enable_reduce_precision": True,
    "env_config_path": "",
    "exec_order": "bfs",
    "gpu_config": {},
    "host_scheduling_max_threshold": "",
    "inter_op_parallel_num": 0,
    "jit_config": {},
    "mempool_block_size": 1.0,
    "op_timeout": 900,
    "print_file_path": "",
    "reserve_class_name_in_scope": True,
    "runtime_num_threads": 2,
    "support_binary": False,
    "variable_memory_max_size": "0",
    "dataset_broadcast_opt_level": 0,
    "enable_profiling": False,
    "infer_boost": "off",
    "jit_level": "",
    "profiling_options": "training_trace",
    "topo_order": "",
}
_WITHOUT_DEFAULTS = {"auto_tune_mode", "enable_auto_mixed_precision", "enable_sparse", "jit_enable_inplace_ops"}
_PARALLEL: dict[str, Any] = {
    "parallel_mode": ParallelMode.STAND_ALONE,
    "gradients_mean": False,
    "device_num": 1,
    "global_rank": 0,
    "parameter_broadcast": False,
    "gradient_fp32_sync": True,
    "search_mode": "recursive_programming",
    "auto_parallel_search_mode": "recursive_programming",
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
    "strategy_ckpt_config": {},
    "full_batch": False,
    "dataset_strategy": "data_parallel",
    "enable_parallel_optimizer": False,
    "parallel_optimizer_config": {},
    "enable_alltoall": False,
    "all_reduce_fusion_config": [],
    "comm_fusion": {},
    "pipeline_stages": 1,
    "pipeline_segments": 1,
    "pipeline_config": {},
    "pipeline_result_broadcast": False,
    "grad_accumulation_step": 1,
    "loss_repeated_mean": True,
    "communi_parallel_mode": "all_group_parallel",
    "force_fp32_communication": False,
    "sharding_propagation": False,
}
_SERVER: dict[str, Any] = {
    "enable_ps": False,
    "config_file_path": "",
    "enable_ssl": False,
    "client_password": "",
    "server_password": "",
}


class _Settings(threading.local):
    """The settings of one thread, because each thread may be a rank."""

    def __init__(self) -> None:
        self.context = dict(_DEFAULTS)
        self.parallel = dict(_PARALLEL)
        self.given = set[str]()
        self.server = dict(_SERVER)


_SETTINGS = _Settings()


def set_context(**kwargs: Any) -> None:
    """Change settings. ``device_target`` decides which backend ``init`` chooses by default.

    Tensors are always on the CPU; if there are GPUs, a message is logged once.

    Raises:
        ValueError: there is no setting of that name; ``mode`` or ``device_target`` has an unknown value.
    """
    for name in kwargs:
        if name not in _DEFAULTS and name not in _WITHOUT_DEFAULTS:
            text = f"the keyword argument {name} is not recognized! The settings are {', '.join(sorted(_DEFAULTS))}."
            refuse(ValueError, f"For 'context.set_context', {text}")
    if kwargs.get("mode", GRAPH_MODE) not in (GRAPH_MODE, PYNATIVE_MODE):
        text = "the argument 'mode' must be context.GRAPH_MODE (0) or context.PYNATIVE_MODE (1), but got "
        refuse(ValueError, f"For 'context.set_context', {text}{kwargs['mode']}")
    if kwargs.get("device_target", "CPU") not in _TARGETS:
        text = f"the argument 'device_target' must be one of {list(_TARGETS)}, but got {kwargs['device_target']}"
        refuse(ValueError, f"For 'context.set_context', {text}")
    if kwargs.get("device_target", "CPU") != "CPU":
        tell_of_cpu("mindspore")
    _SETTINGS.context.update(kwargs)


def get_context(attr_key: str) -> Any:
    """Return a setting.

    Raises:
        ValueError: there is no setting of that name.
    """
    if attr_key not in _SETTINGS.context:
        refuse(ValueError, f"For 'context.get_context', the argument {attr_key} is not recognized!")
    return _SETTINGS.context[attr_key]


def require_own_parallelism() -> None:
    """Refuse the modes in which MindSpore's compiler partitions the operators."""
    mode = _SETTINGS.parallel["parallel_mode"]
    if mode in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL):
        text = "in which MindSpore's compiler divides the operators: should be 'data_parallel' or 'hybrid_parallel'"
        refuse(NotImplementedError, f"parallel_mode is {mode!r}, {text}")


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Call ``set_context`` with these two settings.

    Raises:
        ValueError: ``device_target`` has an unknown value.
    """
    set_context(device_target=device_target, device_id=device_id or 0)


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Change settings of parallelism.

    ``gradients_mean`` is the default of ``mean`` in ``DistributedGradReducer``. In the modes "data_parallel" and
    "hybrid_parallel", ``TrainOneStepCell`` and ``Model`` reduce the gradients; with ``parameter_broadcast``,
    ``Model.train`` first broadcasts rank 0's parameters. The other settings are stored, without effect. A mode in which
    MindSpore's compiler partitions the operators is refused when a Cell is called.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: there is no setting of that name, or ``parallel_mode`` is not a parallel mode.
    """
    for name, value in kwargs.items():
        if name not in _PARALLEL:
            refuse(ValueError, f"Set context keyword {name} is not recognized!")
        kind = type(_PARALLEL[name])
        if type(value) is not kind and name != "dataset_strategy":
            refuse(TypeError, f"The parameter '{name}' must be {kind}, but got {type(value)}")
    mode = kwargs.get("parallel_mode", ParallelMode.STAND_ALONE)
    if mode not in ParallelMode.MODE_LIST:
        text = f"must be in {ParallelMode.MODE_LIST}, but got {mode}"
        refuse(ValueError, f"The context configuration parameter 'parallel_mode' {text}")
    if kwargs.get("device_num", 1) <= 0:
        text = f"must be a positive integer, but got the value of device_num : {kwargs['device_num']}"
        refuse(ValueError, f"The context configuration parameter 'device_num' {text}")
    if not 0 <= kwargs.get("global_rank", 0) < _RANKS:
        text = f"must be in [0, {_RANKS - 1}], but got the value of global_rank : {kwargs['global_rank']}."
        refuse(ValueError, f"The context configuration parameter 'global_rank' {text}")
    _SETTINGS.parallel.update(kwargs)
    _SETTINGS.given.update(kwargs)


def get_auto_parallel_context(attr_key: str) -> Any:
    """Return a setting of parallelism.

    Raises:
        ValueError: there is no setting of that name.
    """
    if attr_key not in _SETTINGS.parallel:
        refuse(ValueError, f"Get context keyword {attr_key} is not recognized!")
    return _SETTINGS.parallel[attr_key]


def was_set(attr_key: str) -> bool:
    """Return whether a setting of parallelism was set since the last reset."""
    return attr_key in _SETTINGS.given


def reset_auto_parallel_context() -> None:
    """Reset the settings of parallelism to their defaults."""
    _SETTINGS.parallel = dict(_PARALLEL)
    _SETTINGS.given.clear()


def set_ps_context(**kwargs: Any) -> None:
    """Change settings of parameter servers, which are not supported here.

    Raises:
        NotImplementedError: ``enable_ps`` is True.
        ValueError: there is no setting of that name.
    """
    for name in kwargs:
        if name not in _SERVER:
            refuse(ValueError, f"Set PS context keyword {name} is not recognized!")
    if kwargs.get("enable_ps"):
        refuse(
            NotImplementedError, "set_ps_context: enable_ps is True, and there are no parameter servers here: use init"
        )
    _SETTINGS.server.update(kwargs)


def get_ps_context(attr_key: str) -> Any:
    """Return a setting of parameter servers.

    Raises:
        ValueError: there is no setting of that name.
    """
    if attr_key not in _SETTINGS.server:
        refuse(ValueError, f"Get PS context keyword {attr_key} is not recognized!")
    return _SETTINGS.server[attr_key]
