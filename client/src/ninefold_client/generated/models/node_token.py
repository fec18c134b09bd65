from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.agent_report import AgentReport
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="NodeToken")


@_attrs_define
class NodeToken:
    """NodeToken"""

    uid: str
    node: ObjectReference
    created_at: datetime.datetime
    agent: AgentReport
    created_by_name: str | Unset = UNSET
    used_at: datetime.datetime | None | Unset = UNSET
    revoked_at: datetime.datetime | None | Unset = UNSET
    sequence: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        node = self.node.to_dict()

        created_at = self.created_at.isoformat()

        agent = self.agent.to_dict()

        created_by_name = self.created_by_name

        used_at: None | str | Unset
        if isinstance(self.used_at, Unset):
            used_at = UNSET
        elif isinstance(self.used_at, datetime.datetime):
            used_at = self.used_at.isoformat()
        else:
            used_at = self.used_at

        revoked_at: None | str | Unset
        if isinstance(self.revoked_at, Unset):
            revoked_at = UNSET
        elif isinstance(self.revoked_at, datetime.datetime):
            revoked_at = self.revoked_at.isoformat()
        else:
            revoked_at = self.revoked_at

        sequence = self.sequence

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "node": node,
                "created_at": created_at,
                "agent": agent,
            }
        )
        if created_by_name is not UNSET:
            field_dict["created_by_name"] = created_by_name
        if used_at is not UNSET:
            field_dict["used_at"] = used_at
        if revoked_at is not UNSET:
            field_dict["revoked_at"] = revoked_at
        if sequence is not UNSET:
            field_dict["sequence"] = sequence

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.agent_report import AgentReport
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        uid = d.pop("uid")

        node = ObjectReference.from_dict(d.pop("node"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        agent = AgentReport.from_dict(d.pop("agent"))

        created_by_name = d.pop("created_by_name", UNSET)

        def _parse_used_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                used_at_type_0 = datetime.datetime.fromisoformat(data)

                return used_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        used_at = _parse_used_at(d.pop("used_at", UNSET))

        def _parse_revoked_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                revoked_at_type_0 = datetime.datetime.fromisoformat(data)

                return revoked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        revoked_at = _parse_revoked_at(d.pop("revoked_at", UNSET))

        sequence = d.pop("sequence", UNSET)

        node_token = cls(
            uid=uid,
            node=node,
            created_at=created_at,
            agent=agent,
            created_by_name=created_by_name,
            used_at=used_at,
            revoked_at=revoked_at,
            sequence=sequence,
        )

        return node_token
