from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.alert_severity import AlertSeverity, check_alert_severity
from ..models.measure_enum import MeasureEnum, check_measure_enum
from ..models.op_enum import OpEnum, check_op_enum

T = TypeVar("T", bound="AlertRuleDocument")


@_attrs_define
class AlertRuleDocument:
    """The definition of a rule, with every field."""

    title: str
    measure: MeasureEnum
    op: OpEnum
    threshold: float
    severity: AlertSeverity
    where: list[str]
    lasts: int
    keeps: int
    group_by: list[str]
    repeat: int | None
    enabled: bool
    name: str

    def to_dict(self) -> dict[str, Any]:
        title = self.title

        measure: str = self.measure

        op: str = self.op

        threshold = self.threshold

        severity: str = self.severity

        where = self.where

        lasts = self.lasts

        keeps = self.keeps

        group_by = self.group_by

        repeat: int | None
        repeat = self.repeat

        enabled = self.enabled

        name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "title": title,
                "measure": measure,
                "op": op,
                "threshold": threshold,
                "severity": severity,
                "where": where,
                "lasts": lasts,
                "keeps": keeps,
                "group_by": group_by,
                "repeat": repeat,
                "enabled": enabled,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        title = d.pop("title")

        measure = check_measure_enum(d.pop("measure"))

        op = check_op_enum(d.pop("op"))

        threshold = d.pop("threshold")

        severity = check_alert_severity(d.pop("severity"))

        where = cast(list[str], d.pop("where"))

        lasts = d.pop("lasts")

        keeps = d.pop("keeps")

        group_by = cast(list[str], d.pop("group_by"))

        def _parse_repeat(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        repeat = _parse_repeat(d.pop("repeat"))

        enabled = d.pop("enabled")

        name = d.pop("name")

        alert_rule_document = cls(
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
            name=name,
        )

        return alert_rule_document
