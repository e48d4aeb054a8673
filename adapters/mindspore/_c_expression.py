"""``mindspore._c_expression``: names of MindSpore's compiled module that programs use to make a group (2.10.0)."""

from __future__ import annotations

from collshim.adapting.refusing import refuse


class GroupOptions:
    """Options of ``create_group``, for MindSpore's devices: stored, without effect here.

    Attributes:
        hccl_config: settings by name, numbers or strings.
        use_async: whether the group is made in the background.

    Raises:
        TypeError: ``hccl_config`` is set to a value that is not a dict.
        AttributeError: another attribute is set.
    """

    __slots__ = ("_hccl_config", "use_async")

    def __init__(self) -> None:
        self._hccl_config: dict[str, int | str] = {}
        self.use_async = False

    @property
    def hccl_config(self) -> dict[str, int | str]:
        """Settings by name."""
        return self._hccl_config

    @hccl_config.setter
    def hccl_config(self, config: dict[str, int | str]) -> None:
        if not isinstance(config, dict):
            refuse(TypeError, f"hccl_config is {config!r}, should be a dict of numbers and strings")
        self._hccl_config = dict(config)


__all__ = ["GroupOptions"]
