from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.node_labels import NodeLabels
    from ..models.node_locality import NodeLocality
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="Node")


@_attrs_define
class Node:
    """Node"""

    uid: str
    name: str
    cluster: ObjectReference
    labels: NodeLabels
    locality: NodeLocality
    cpu: int | Unset = UNSET
    memory: int | Unset = UNSET
    ready: bool | Unset = UNSET
    cordoned: bool | Unset = UNSET
    last_seen_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        cluster = self.cluster.to_dict()

        labels = self.labels.to_dict()

        locality = self.locality.to_dict()

        cpu = self.cpu

        memory = self.memory

        ready = self.ready

        cordoned = self.cordoned

        last_seen_at: None | str | Unset
        if isinstance(self.last_seen_at, Unset):
            last_seen_at = UNSET
        elif isinstance(self.last_seen_at, datetime.datetime):
            last_seen_at = self.last_seen_at.isoformat()
        else:
            last_seen_at = self.last_seen_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "cluster": cluster,
                "labels": labels,
                "locality": locality,
            }
        )
        if cpu is not UNSET:
            field_dict["cpu"] = cpu
        if memory is not UNSET:
            field_dict["memory"] = memory
        if ready is not UNSET:
            field_dict["ready"] = ready
        if cordoned is not UNSET:
            field_dict["cordoned"] = cordoned
        if last_seen_at is not UNSET:
            field_dict["last_seen_at"] = last_seen_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.node_labels import NodeLabels
        from ..models.node_locality import NodeLocality
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        cluster = ObjectReference.from_dict(d.pop("cluster"))

        labels = NodeLabels.from_dict(d.pop("labels"))

        locality = NodeLocality.from_dict(d.pop("locality"))

        cpu = d.pop("cpu", UNSET)

        memory = d.pop("memory", UNSET)

        ready = d.pop("ready", UNSET)

        cordoned = d.pop("cordoned", UNSET)

        def _parse_last_seen_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_seen_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_seen_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_seen_at = _parse_last_seen_at(d.pop("last_seen_at", UNSET))

        node = cls(
            uid=uid,
            name=name,
            cluster=cluster,
            labels=labels,
            locality=locality,
            cpu=cpu,
            memory=memory,
            ready=ready,
            cordoned=cordoned,
            last_seen_at=last_seen_at,
        )

        return node
