from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.queue_change_eviction import QueueChangeEviction
    from ..models.queue_difference import QueueDifference
    from ..models.queue_finding import QueueFinding
    from ..models.queue_gain import QueueGain


T = TypeVar("T", bound="QueueTreePreview")


@_attrs_define
class QueueTreePreview:
    """What saving a change would mean now."""

    differences: list[QueueDifference]
    findings: list[QueueFinding]
    warnings: list[QueueFinding]
    gains: list[QueueGain]
    reclaims: list[QueueChangeEviction]
    fingerprint: str

    def to_dict(self) -> dict[str, Any]:
        differences = []
        for differences_item_data in self.differences:
            differences_item = differences_item_data.to_dict()
            differences.append(differences_item)

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        warnings = []
        for warnings_item_data in self.warnings:
            warnings_item = warnings_item_data.to_dict()
            warnings.append(warnings_item)

        gains = []
        for gains_item_data in self.gains:
            gains_item = gains_item_data.to_dict()
            gains.append(gains_item)

        reclaims = []
        for reclaims_item_data in self.reclaims:
            reclaims_item = reclaims_item_data.to_dict()
            reclaims.append(reclaims_item)

        fingerprint = self.fingerprint

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "differences": differences,
                "findings": findings,
                "warnings": warnings,
                "gains": gains,
                "reclaims": reclaims,
                "fingerprint": fingerprint,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_change_eviction import QueueChangeEviction
        from ..models.queue_difference import QueueDifference
        from ..models.queue_finding import QueueFinding
        from ..models.queue_gain import QueueGain

        d = dict(src_dict)
        differences = []
        _differences = d.pop("differences")
        for differences_item_data in _differences:
            differences_item = QueueDifference.from_dict(differences_item_data)

            differences.append(differences_item)

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = QueueFinding.from_dict(findings_item_data)

            findings.append(findings_item)

        warnings = []
        _warnings = d.pop("warnings")
        for warnings_item_data in _warnings:
            warnings_item = QueueFinding.from_dict(warnings_item_data)

            warnings.append(warnings_item)

        gains = []
        _gains = d.pop("gains")
        for gains_item_data in _gains:
            gains_item = QueueGain.from_dict(gains_item_data)

            gains.append(gains_item)

        reclaims = []
        _reclaims = d.pop("reclaims")
        for reclaims_item_data in _reclaims:
            reclaims_item = QueueChangeEviction.from_dict(reclaims_item_data)

            reclaims.append(reclaims_item)

        fingerprint = d.pop("fingerprint")

        queue_tree_preview = cls(
            differences=differences,
            findings=findings,
            warnings=warnings,
            gains=gains,
            reclaims=reclaims,
            fingerprint=fingerprint,
        )

        return queue_tree_preview
