"""The telemetry port: somewhere that figures of cards can be read.

A package declares an entry point in ``ninefold.telemetry``. An adapter brings what it read into the product's own
names and units; whether a value is possible, and whose card it is, the product judges for all of them alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from controlplane.domain.outbound.egress import parse_target
from controlplane.domain.telemetry import Reading

if TYPE_CHECKING:
    # It brings numpy, which whoever only names a source does not need.
    from controlplane.domain.sheets import Sheet


class TelemetryError(Exception):
    """An adapter cannot be used as it was asked for; the message names the option and what would be right."""


class TelemetryFailed(TelemetryError):
    """Nothing could be read; the message says why. Sooner or later it may work again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that was read and not kept."""

    #: What it was about, such as a card or a series.
    what: str
    why: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one reading of a source brought."""

    readings: tuple[Reading, ...] = ()
    #: Readings of many cards each, where they came in the usual form.
    sheets: tuple[Sheet, ...] = ()
    refused: tuple[Refusal, ...] = ()
    #: Parts of the source that did not answer, such as one exporter of many → why.
    silent: Mapping[str, str] = field(default_factory=dict)

    def every(self) -> tuple[Reading, ...]:
        """All readings, those in sheets too."""
        return (*self.readings, *(one for sheet in self.sheets for one in sheet.readings()))


def exporter_name(*, url: str, node: str) -> str:
    """What one exporter of many is called where it is spoken of: its node, or its address where it has none.

    :raises EgressRefused: if the URL is none, where it is needed.
    """
    if node:
        return node
    parts = parse_target(url)
    return f"{parts.authority}{parts.path}"


@runtime_checkable
class Telemetry(Protocol):
    def read(self) -> Batch:
        """The newest figures of all cards that the source knows; what does not answer in time is ``silent``.

        :raises TelemetryFailed: if nothing at all could be read.
        """
        ...
