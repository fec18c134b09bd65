"""Which device the process uses, without a vendor's name.

The chip's plug-in has already narrowed what is visible; ``torch.accelerator`` names whatever is left. The launch
says in ``NINEFOLD_DEVICE`` what kind of device was given, so that nobody holds cards and works on the processor.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from ninefold_runtime.exits import BadInput


def device() -> Any:
    """The ``torch.device`` that was given; where nobody says, the visible accelerator or else the processor.

    :raises BadInput: if an accelerator was given and torch does not find it.
    """
    given = os.environ.get("NINEFOLD_DEVICE", "")
    found = None
    if given != "cpu" and torch.accelerator.is_available():
        found = torch.accelerator.current_accelerator(check_available=True)
    if given not in ("", "cpu") and (found is None or found.type != given):
        raise BadInput(
            f"cards of the device {given!r} were given, but torch {torch.__version__} finds "
            f"{found.type if found is not None else 'no accelerator'}; "
            f"choose an engine whose environment brings torch for {given!r}, or check the node's driver"
        )
    return torch.device("cpu") if found is None else found


def dtype(precision: str) -> Any:
    """The ``torch.dtype`` for ``auto | float32 | bfloat16``; ``auto`` is bfloat16 on accelerators alone.

    :raises BadInput: as ``device`` does, whatever the precision: before a model is loaded for nothing.
    """
    on_processor = device().type == "cpu"
    if precision == "bfloat16" or (precision == "auto" and not on_processor):
        return torch.bfloat16
    return torch.float32


def seed_everything(seed: int) -> None:
    """Every generator of torch, on the processor and on the accelerator."""
    torch.manual_seed(seed)
