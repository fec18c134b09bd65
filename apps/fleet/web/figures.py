"""Figures of chips in people's units and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from controlplane.domain.accelerators import Chip, ChipKind, Dtype
from controlplane.domain.faults import FaultLevel
from controlplane.domain.geometry import Geometry, Group
from controlplane.domain.resources import GIB

KINDS: Mapping[ChipKind, Promise] = {
    ChipKind.CPU: _("processor"),
    ChipKind.GPU: _("GPU"),
    ChipKind.NPU: _("NPU"),
}
LEVELS: Mapping[FaultLevel, Promise] = {
    FaultLevel.NOTE: _("note it"),
    FaultLevel.RESTART_REQUEST: _("restart the request"),
    FaultLevel.RESTART_JOB: _("restart the job"),
    FaultLevel.RESET_WHEN_IDLE: _("take no new work, reset when idle"),
    FaultLevel.RESET_NOW: _("reset now"),
    FaultLevel.ISOLATE: _("isolate the card"),
}
#: What exporters tell, by the product's names (``controlplane.ports.chips.Exporter``).
READINGS: Mapping[str, Promise] = {
    "utilization": _("Utilization"),
    "memory_used": _("Memory in use"),
    "memory_total": _("Memory in all"),
    "temperature": _("Temperature"),
    "power": _("Power"),
    "health": _("Health"),
    "fault": _("Fault"),
}
_WHOLE = frozenset({Dtype.INT8, Dtype.INT4})
_GIGA, _TERA = 1e9, 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of what is known."""

    code: str
    label: str
    #: With its unit; empty where nobody published it.
    value: str
    #: No document of the maker confirms it.
    unverified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOut:
    """How cards of a node are given out."""

    #: Allowed sizes of a request, in words.
    sizes: str
    rings: tuple[Group, ...]
    pairs_of: int
    split_evenly: bool


def figures_of(chip: Chip) -> list[Figure]:
    """Memory, bandwidths and rates; what has no value is not published."""
    memory = f"{chip.memory / GIB:.4g} GiB" if chip.memory else ""
    return [
        _figure(chip, "memory", gettext("Memory"), memory),
        _figure(
            chip, "memory_bandwidth", gettext("Memory bandwidth"), _bandwidth(chip.memory_bandwidth)
        ),
        _figure(chip, "link_bandwidth", gettext("Link, one way"), _bandwidth(chip.link_bandwidth)),
        _figure(chip, "peak_rates", gettext("Peak rates"), _best(chip)),
    ]


def rates_of(chip: Chip) -> list[Figure]:
    """Dense peaks by number format, wide ones first; those without a figure are left out."""
    return [
        Figure(
            code=dtype.value,
            label=dtype.value,
            value=_rate(dtype, chip.peak_rates[dtype]),
            unverified="peak_rates" in chip.unverified,
        )
        for dtype in sorted(chip.peak_rates, key=tuple(Dtype).index)
    ]


def given_out(what: Chip | Geometry) -> GivenOut:
    geometry = what.geometry if isinstance(what, Chip) else what
    return GivenOut(
        sizes=", ".join(map(str, geometry.sizes)),
        rings=geometry.rings,
        pairs_of=geometry.aligned_to,
        split_evenly=geometry.split_evenly,
    )


def _figure(chip: Chip, code: str, label: str, value: str) -> Figure:
    return Figure(
        code=code, label=label, value=value, unverified=bool(value) and code in chip.unverified
    )


def _best(chip: Chip) -> str:
    order = (Dtype.BFLOAT16, Dtype.FLOAT16, *chip.peak_rates)
    found = next((one for one in order if one in chip.peak_rates), None)
    return f"{_rate(found, chip.peak_rates[found])} {found.value}" if found else ""


def _rate(dtype: Dtype, rate: float) -> str:
    return f"{rate / _TERA:,.5g} {'TOPS' if dtype in _WHOLE else 'TFLOPS'}"


def _bandwidth(amount: float | None) -> str:
    if amount is None:
        return ""
    return f"{amount / _TERA:.4g} TB/s" if amount >= _TERA else f"{amount / _GIGA:.4g} GB/s"
