"""Number formats of a computation, and the chips that lack one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.domain.common.accelerators import Chip, Dtype
from controlplane.domain.common.spec_fields import FieldLimit


def precision(spec: Mapping[str, Any], *, chip: Chip) -> str:
    """The number format of the computation: ``auto`` is bfloat16 wherever the chip is not known to lack it."""
    asked = str(spec["precision"])
    if asked != "auto":
        return asked
    return "float16" if _lacks_bfloat16(chip) else "bfloat16"


def no_bfloat16(chip: Chip | None) -> tuple[FieldLimit, ...]:
    """The limit of a chip that is known to lack the format."""
    if chip is None or not _lacks_bfloat16(chip):
        return ()
    return (
        FieldLimit(
            field="precision", values=("bfloat16",), reason=f"{chip.label} computes in float16 only"
        ),
    )


def _lacks_bfloat16(chip: Chip) -> bool:
    return bool(chip.peak_rates) and Dtype.BFLOAT16 not in chip.peak_rates
