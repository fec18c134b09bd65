from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.alert_severity import AlertSeverity, check_alert_severity
from ..models.measure_enum import MeasureEnum, check_measure_enum
from ..models.op_enum import OpEnum, check_op_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="PatchedAlertRuleChangeRequest")


@_attrs_define
class PatchedAlertRuleChangeRequest:
    """PatchedAlertRuleChangeRequest"""

    title: str | Unset = UNSET
    measure: MeasureEnum | Unset = UNSET
    op: OpEnum | Unset = UNSET
    threshold: float | Unset = UNSET
    severity: AlertSeverity | Unset = UNSET
    where: list[str] | Unset = UNSET
    lasts: int | Unset = UNSET
    keeps: int | Unset = UNSET
    group_by: list[str] | Unset = UNSET
    repeat: int | None | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        title = self.title

        measure: str | Unset = UNSET
        if not isinstance(self.measure, Unset):
            measure = self.measure

        op: str | Unset = UNSET
        if not isinstance(self.op, Unset):
            op = self.op

        threshold = self.threshold

        severity: str | Unset = UNSET
        if not isinstance(self.severity, Unset):
            severity = self.severity

        where: list[str] | Unset = UNSET
        if not isinstance(self.where, Unset):
            where = self.where

        lasts = self.lasts

        keeps = self.keeps

        group_by: list[str] | Unset = UNSET
        if not isinstance(self.group_by, Unset):
            group_by = self.group_by

        repeat: int | None | Unset
        if isinstance(self.repeat, Unset):
            repeat = UNSET
        else:
            repeat = self.repeat

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if title is not UNSET:
            field_dict["title"] = title
        if measure is not UNSET:
            field_dict["measure"] = measure
        if op is not UNSET:
            field_dict["op"] = op
        if threshold is not UNSET:
            field_dict["threshold"] = threshold
        if severity is not UNSET:
            field_dict["severity"] = severity
        if where is not UNSET:
            field_dict["where"] = where
        if lasts is not UNSET:
            field_dict["lasts"] = lasts
        if keeps is not UNSET:
            field_dict["keeps"] = keeps
        if group_by is not UNSET:
            field_dict["group_by"] = group_by
        if repeat is not UNSET:
            field_dict["repeat"] = repeat
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        title = d.pop("title", UNSET)

        _measure = d.pop("measure", UNSET)
        measure: MeasureEnum | Unset
        if isinstance(_measure, Unset):
            measure = UNSET
        else:
            measure = check_measure_enum(_measure)

        _op = d.pop("op", UNSET)
        op: OpEnum | Unset
        if isinstance(_op, Unset):
            op = UNSET
        else:
            op = check_op_enum(_op)

        threshold = d.pop("threshold", UNSET)

        _severity = d.pop("severity", UNSET)
        severity: AlertSeverity | Unset
        if isinstance(_severity, Unset):
            severity = UNSET
        else:
            severity = check_alert_severity(_severity)

        where = cast(list[str], d.pop("where", UNSET))

        lasts = d.pop("lasts", UNSET)

        keeps = d.pop("keeps", UNSET)

        group_by = cast(list[str], d.pop("group_by", UNSET))

        def _parse_repeat(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        repeat = _parse_repeat(d.pop("repeat", UNSET))

        enabled = d.pop("enabled", UNSET)

        patched_alert_rule_change_request = cls(
            title=title,
            measure=measure,
            op=op,
            threshold=threshold,
            severity=severity,
            where=where,
            lasts=lasts,
            keeps=keeps,
            group_by=group_by,
            repeat=repeat,
            enabled=enabled,
        )

        return patched_alert_rule_change_request
