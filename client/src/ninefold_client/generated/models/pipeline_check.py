from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.pipeline_finding import PipelineFinding


T = TypeVar("T", bound="PipelineCheck")


@_attrs_define
class PipelineCheck:
    """PipelineCheck"""

    accepted: bool
    findings: list[PipelineFinding]

    def to_dict(self) -> dict[str, Any]:
        accepted = self.accepted

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "accepted": accepted,
                "findings": findings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pipeline_finding import PipelineFinding

        d = dict(src_dict)
        accepted = d.pop("accepted")

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = PipelineFinding.from_dict(findings_item_data)

            findings.append(findings_item)

        pipeline_check = cls(
            accepted=accepted,
            findings=findings,
        )

        return pipeline_check
