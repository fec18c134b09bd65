"""Samples read from the cards at one time, written in Prometheus' text format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSample:
    """One value of one card, under the series name of the vendor's exporter."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReading:
    """A reader's samples; with a problem they may be partial, or empty."""

    samples: tuple[CardSample, ...] = ()
    #: PCI address of each card by its index, as the vendor's tool prints it; empty for processors.
    addresses: Mapping[int, str] = field(default_factory=dict)
    #: Why cards could not be read; empty where all were.
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleBatch:
    """What is sent at once."""

    at: datetime
    text: str


def format_exposition(samples: Iterable[CardSample]) -> str:
    """The samples as lines; what is not a finite number is left out, since absent means not measured."""
    return "".join(
        f"{_format_sample(sample)}\n" for sample in samples if math.isfinite(sample.value)
    )


def _format_sample(sample: CardSample) -> str:
    labels = ",".join(
        f'{name}="{_escape_label_value(text)}"' for name, text in sample.labels.items()
    )
    value = float(sample.value)
    shown = str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return f"{sample.name}{{{labels}}} {shown}" if labels else f"{sample.name} {shown}"


def _escape_label_value(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
