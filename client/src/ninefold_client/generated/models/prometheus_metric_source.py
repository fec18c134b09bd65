from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.prometheus_metric_source_kind import (
    PrometheusMetricSourceKind,
    check_prometheus_metric_source_kind,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.prometheus_metric_source_unreachable import (
        PrometheusMetricSourceUnreachable,
    )
    from ..models.prometheus_source_options import PrometheusSourceOptions
    from ..models.reason import Reason


T = TypeVar("T", bound="PrometheusMetricSource")


@_attrs_define
class PrometheusMetricSource:
    """PrometheusMetricSource"""

    uid: str
    name: str
    cluster: ObjectReference
    kind: PrometheusMetricSourceKind
    options: PrometheusSourceOptions
    has_token: bool
    error: Reason
    stalled: Reason
    refusals: list[str]
    unreachable: PrometheusMetricSourceUnreachable
    created_at: datetime.datetime
    every: int | Unset = UNSET
    enabled: bool | Unset = UNSET
    tried_at: datetime.datetime | None | Unset = UNSET
    read_at: datetime.datetime | None | Unset = UNSET
    readings: int | Unset = UNSET
    refused: int | Unset = UNSET
    created_by_name: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        cluster = self.cluster.to_dict()

        kind: str = self.kind

        options = self.options.to_dict()

        has_token = self.has_token

        error = self.error.to_dict()

        stalled = self.stalled.to_dict()

        refusals = self.refusals

        unreachable = self.unreachable.to_dict()

        created_at = self.created_at.isoformat()

        every = self.every

        enabled = self.enabled

        tried_at: None | str | Unset
        if isinstance(self.tried_at, Unset):
            tried_at = UNSET
        elif isinstance(self.tried_at, datetime.datetime):
            tried_at = self.tried_at.isoformat()
        else:
            tried_at = self.tried_at

        read_at: None | str | Unset
        if isinstance(self.read_at, Unset):
            read_at = UNSET
        elif isinstance(self.read_at, datetime.datetime):
            read_at = self.read_at.isoformat()
        else:
            read_at = self.read_at

        readings = self.readings

        refused = self.refused

        created_by_name = self.created_by_name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "cluster": cluster,
                "kind": kind,
                "options": options,
                "has_token": has_token,
                "error": error,
                "stalled": stalled,
                "refusals": refusals,
                "unreachable": unreachable,
                "created_at": created_at,
            }
        )
        if every is not UNSET:
            field_dict["every"] = every
        if enabled is not UNSET:
            field_dict["enabled"] = enabled
        if tried_at is not UNSET:
            field_dict["tried_at"] = tried_at
        if read_at is not UNSET:
            field_dict["read_at"] = read_at
        if readings is not UNSET:
            field_dict["readings"] = readings
        if refused is not UNSET:
            field_dict["refused"] = refused
        if created_by_name is not UNSET:
            field_dict["created_by_name"] = created_by_name

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.prometheus_metric_source_unreachable import (
            PrometheusMetricSourceUnreachable,
        )
        from ..models.prometheus_source_options import PrometheusSourceOptions
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        cluster = ObjectReference.from_dict(d.pop("cluster"))

        kind = check_prometheus_metric_source_kind(d.pop("kind"))

        options = PrometheusSourceOptions.from_dict(d.pop("options"))

        has_token = d.pop("has_token")

        error = Reason.from_dict(d.pop("error"))

        stalled = Reason.from_dict(d.pop("stalled"))

        refusals = cast(list[str], d.pop("refusals"))

        unreachable = PrometheusMetricSourceUnreachable.from_dict(d.pop("unreachable"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        every = d.pop("every", UNSET)

        enabled = d.pop("enabled", UNSET)

        def _parse_tried_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                tried_at_type_0 = datetime.datetime.fromisoformat(data)

                return tried_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        tried_at = _parse_tried_at(d.pop("tried_at", UNSET))

        def _parse_read_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                read_at_type_0 = datetime.datetime.fromisoformat(data)

                return read_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        read_at = _parse_read_at(d.pop("read_at", UNSET))

        readings = d.pop("readings", UNSET)

        refused = d.pop("refused", UNSET)

        created_by_name = d.pop("created_by_name", UNSET)

        prometheus_metric_source = cls(
            uid=uid,
            name=name,
            cluster=cluster,
            kind=kind,
            options=options,
            has_token=has_token,
            error=error,
            stalled=stalled,
            refusals=refusals,
            unreachable=unreachable,
            created_at=created_at,
            every=every,
            enabled=enabled,
            tried_at=tried_at,
            read_at=read_at,
            readings=readings,
            refused=refused,
            created_by_name=created_by_name,
        )

        return prometheus_metric_source
