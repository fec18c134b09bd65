from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.alert_severity import AlertSeverity, check_alert_severity
from ..models.measure_enum import MeasureEnum, check_measure_enum
from ..models.op_enum import OpEnum, check_op_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="AlertRuleCreateRequest")


@_attrs_define
class AlertRuleCreateRequest:
    """AlertRuleCreateRequest"""

    title: str
    measure: MeasureEnum
    op: OpEnum
    threshold: float
    severity: AlertSeverity
    name: str
    where: list[str] | Unset = UNSET
    lasts: int | Unset = UNSET
    keeps: int | Unset = UNSET
    group_by: list[str] | Unset = UNSET
    repeat: int | None | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        title = self.title

        measure: str = self.measure

        op: str = self.op

        threshold = self.threshold

        severity: str = self.severity

        name = self.name

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

        field_dict.update(
            {
                "title": title,
                "measure": measure,
                "op": op,
                "threshold": threshold,
                "severity": severity,
                "name": name,
            }
        )
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
        title = d.pop("title")

        measure = check_measure_enum(d.pop("measure"))

        op = check_op_enum(d.pop("op"))

        threshold = d.pop("threshold")

        severity = check_alert_severity(d.pop("severity"))

        name = d.pop("name")

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

        alert_rule_create_request = cls(
            title=title,
            measure=measure,
            op=op,
            threshold=threshold,
            severity=severity,
            name=name,
            where=where,
            lasts=lasts,
            keeps=keeps,
            group_by=group_by,
            repeat=repeat,
            enabled=enabled,
        )

        return alert_rule_create_request
