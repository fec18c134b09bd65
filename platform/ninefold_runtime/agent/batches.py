"""What one look at the cards saw, and how it is written down: Prometheus' text format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One figure of one card, under the name that the vendor's exporter gives it."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reader saw; with trouble it may have seen a part, or nothing."""

    samples: tuple[Sample, ...] = ()
    #: PCI address of each card by its index, as the vendor's tool prints it; empty for processors.
    addresses: Mapping[int, str] = field(default_factory=dict)
    #: Why cards could not be read; empty where all were.
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is sent at once."""

    at: datetime
    text: str


def exposition(samples: Iterable[Sample]) -> str:
    """The samples as lines; what is not a finite number is left out, since absent means not measured."""
    return "".join(f"{_line(sample)}\n" for sample in samples if math.isfinite(sample.value))


def _line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in sample.labels.items())
    value = float(sample.value)
    shown = str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return f"{sample.name}{{{labels}}} {shown}" if labels else f"{sample.name} {shown}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
