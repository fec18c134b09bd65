from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="RetentionRules")


@_attrs_define
class RetentionRules:
    """Null switches a rule off; checkpoints are then deleted after 7 days."""

    enabled: bool
    keep_versions: int | None
    checkpoint_days: int | None
    failed_days: int | None
    log_days: int | None

    def to_dict(self) -> dict[str, Any]:
        enabled = self.enabled

        keep_versions: int | None
        keep_versions = self.keep_versions

        checkpoint_days: int | None
        checkpoint_days = self.checkpoint_days

        failed_days: int | None
        failed_days = self.failed_days

        log_days: int | None
        log_days = self.log_days

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "enabled": enabled,
                "keep_versions": keep_versions,
                "checkpoint_days": checkpoint_days,
                "failed_days": failed_days,
                "log_days": log_days,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        enabled = d.pop("enabled")

        def _parse_keep_versions(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        keep_versions = _parse_keep_versions(d.pop("keep_versions"))

        def _parse_checkpoint_days(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        checkpoint_days = _parse_checkpoint_days(d.pop("checkpoint_days"))

        def _parse_failed_days(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        failed_days = _parse_failed_days(d.pop("failed_days"))

        def _parse_log_days(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        log_days = _parse_log_days(d.pop("log_days"))

        retention_rules = cls(
            enabled=enabled,
            keep_versions=keep_versions,
            checkpoint_days=checkpoint_days,
            failed_days=failed_days,
            log_days=log_days,
        )

        return retention_rules
