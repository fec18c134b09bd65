"""Which device the process uses, without a vendor's name.

The chip's plug-in has already narrowed what is visible; ``torch.accelerator`` names whatever is left.
"""

from __future__ import annotations

from typing import Any

import torch


def device() -> Any:
    """The ``torch.device`` of the visible accelerator, or the processor where there is none."""
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu")


def dtype(precision: str) -> Any:
    """The ``torch.dtype`` for ``auto | float32 | bfloat16``; ``auto`` is bfloat16 on accelerators alone."""
    if precision == "bfloat16" or (precision == "auto" and device().type != "cpu"):
        return torch.bfloat16
    return torch.float32


def seed_everything(seed: int) -> None:
    """Every generator of torch, on the processor and on the accelerator."""
    torch.manual_seed(seed)
