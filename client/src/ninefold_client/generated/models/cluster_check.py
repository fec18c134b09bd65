from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.verdict_enum import VerdictEnum, check_verdict_enum

T = TypeVar("T", bound="ClusterCheck")


@_attrs_define
class ClusterCheck:
    """ClusterCheck"""

    name: str
    verdict: VerdictEnum
    message: str
    remedy: str
    manifest: str

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        verdict: str = self.verdict

        message = self.message

        remedy = self.remedy

        manifest = self.manifest

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "verdict": verdict,
                "message": message,
                "remedy": remedy,
                "manifest": manifest,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        verdict = check_verdict_enum(d.pop("verdict"))

        message = d.pop("message")

        remedy = d.pop("remedy")

        manifest = d.pop("manifest")

        cluster_check = cls(
            name=name,
            verdict=verdict,
            message=message,
            remedy=remedy,
            manifest=manifest,
        )

        return cluster_check
