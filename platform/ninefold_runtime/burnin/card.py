"""One card as a burn-in uses it, whatever its maker."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ninefold_runtime.exit_codes import InvalidTaskInput

_GROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class BurninCard:
    #: From 0, among those that the process sees.
    index: int
    #: A ``torch.device``.
    device: Any

    @classmethod
    def of(cls, kind: str, *, index: int) -> BurninCard:
        """The card of that kind and number, set as the current device.

        :raises InvalidTaskInput: if torch does not find it.
        """
        if kind == "cpu":
            return cls(index=index, device=torch.device("cpu"))
        found = (
            torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        )
        if found is None or found.type != kind:
            raise InvalidTaskInput(
                f"a burn-in of {kind!r} was asked for, but torch {torch.__version__} finds "
                f"{found.type if found is not None else 'no accelerator'}: the engine's environment brings "
                "another build of torch, or the driver does not see the card"
            )
        count = torch.accelerator.device_count()
        if index >= count:
            raise InvalidTaskInput(
                f"card {index} was asked for, but torch finds {count} of {kind!r}"
            )
        torch.accelerator.set_device_index(index)
        return cls(index=index, device=torch.device(kind, index))

    def synchronize(self) -> None:
        """Wait until the card has done what it was given."""
        if self.device.type != "cpu":
            torch.accelerator.synchronize()

    def free_memory(self) -> int:
        """Bytes; of the processor, what is there for one core of the machine."""
        if self.device.type == "cpu":
            return _available_memory() // (os.cpu_count() or 1)
        free, _ = torch.get_device_module(self.device).mem_get_info(self.index)
        return int(free)

    def release_memory(self) -> None:
        """Return what torch keeps of the memory that was freed."""
        if self.device.type != "cpu":
            torch.get_device_module(self.device).empty_cache()


def _available_memory() -> int:
    """What the machine has free, or the container where that is less."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    available = int(kilobytes) * 1024
    # Not in a container, or one without a limit, whose file says ``max``.
    with suppress(OSError, ValueError):
        limit = int((_GROUP / "memory.max").read_text(encoding="ascii"))
        used = int((_GROUP / "memory.current").read_text(encoding="ascii"))
        available = min(available, max(0, limit - used))
    return available
