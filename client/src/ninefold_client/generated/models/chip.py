from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.chip_kind import ChipKind, check_chip_kind
from ..models.confidence_enum import ConfidenceEnum, check_confidence_enum

if TYPE_CHECKING:
    from ..models.chip_peak_rates import ChipPeakRates


T = TypeVar("T", bound="Chip")


@_attrs_define
class Chip:
    """Chip"""

    name: str
    title: str
    vendor: str
    kind: ChipKind
    memory: int
    memory_bandwidth: float | None
    link_bandwidth: float | None
    peak_rates: ChipPeakRates
    legal_request_sizes: list[int]
    aliases: list[str]
    resource: str
    confidence: ConfidenceEnum
    unverified: list[str]
    run_on_hardware: bool
    cards: int
    usable_cards: int

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        title = self.title

        vendor = self.vendor

        kind: str = self.kind

        memory = self.memory

        memory_bandwidth: float | None
        memory_bandwidth = self.memory_bandwidth

        link_bandwidth: float | None
        link_bandwidth = self.link_bandwidth

        peak_rates = self.peak_rates.to_dict()

        legal_request_sizes = self.legal_request_sizes

        aliases = self.aliases

        resource = self.resource

        confidence: str = self.confidence

        unverified = self.unverified

        run_on_hardware = self.run_on_hardware

        cards = self.cards

        usable_cards = self.usable_cards

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "title": title,
                "vendor": vendor,
                "kind": kind,
                "memory": memory,
                "memory_bandwidth": memory_bandwidth,
                "link_bandwidth": link_bandwidth,
                "peak_rates": peak_rates,
                "legal_request_sizes": legal_request_sizes,
                "aliases": aliases,
                "resource": resource,
                "confidence": confidence,
                "unverified": unverified,
                "run_on_hardware": run_on_hardware,
                "cards": cards,
                "usable_cards": usable_cards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.chip_peak_rates import ChipPeakRates

        d = dict(src_dict)
        name = d.pop("name")

        title = d.pop("title")

        vendor = d.pop("vendor")

        kind = check_chip_kind(d.pop("kind"))

        memory = d.pop("memory")

        def _parse_memory_bandwidth(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        memory_bandwidth = _parse_memory_bandwidth(d.pop("memory_bandwidth"))

        def _parse_link_bandwidth(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        link_bandwidth = _parse_link_bandwidth(d.pop("link_bandwidth"))

        peak_rates = ChipPeakRates.from_dict(d.pop("peak_rates"))

        legal_request_sizes = cast(list[int], d.pop("legal_request_sizes"))

        aliases = cast(list[str], d.pop("aliases"))

        resource = d.pop("resource")

        confidence = check_confidence_enum(d.pop("confidence"))

        unverified = cast(list[str], d.pop("unverified"))

        run_on_hardware = d.pop("run_on_hardware")

        cards = d.pop("cards")

        usable_cards = d.pop("usable_cards")

        chip = cls(
            name=name,
            title=title,
            vendor=vendor,
            kind=kind,
            memory=memory,
            memory_bandwidth=memory_bandwidth,
            link_bandwidth=link_bandwidth,
            peak_rates=peak_rates,
            legal_request_sizes=legal_request_sizes,
            aliases=aliases,
            resource=resource,
            confidence=confidence,
            unverified=unverified,
            run_on_hardware=run_on_hardware,
            cards=cards,
            usable_cards=usable_cards,
        )

        return chip
