"""Run a module that a package ships, after torch's default group was made over a backend.

``python -m tests.upstream.programs.started BACKEND MODULE [ARGUMENT ...]``: many packages use the existing default
group if there is one, and would make one over gloo otherwise.
"""

from __future__ import annotations

import runpy
import sys

from tests.upstream.programs.ranks import LIMIT, register


def main() -> None:
    """Make the group and run the module, which may destroy the group."""
    import torch.distributed as dist

    backend, module, *arguments = sys.argv[1:]
    register(backend)
    dist.init_process_group(backend, timeout=LIMIT)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
