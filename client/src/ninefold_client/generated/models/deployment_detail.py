from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.deployment_state import DeploymentState, check_deployment_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason
    from ..models.revision import Revision
    from ..models.rollout_status import RolloutStatus


T = TypeVar("T", bound="DeploymentDetail")


@_attrs_define
class DeploymentDetail:
    """DeploymentDetail"""

    uid: str
    name: str
    state_reason: Reason
    team: ObjectReference
    created_by: str
    created_at: datetime.datetime
    queue: str
    ready_replicas: int
    gateway_url: str
    rollout: RolloutStatus
    revisions: list[Revision]
    route: None | str | Unset = UNSET
    state: DeploymentState | Unset = UNSET
    replica_count: int | Unset = UNSET
    max_surge: str | Unset = UNSET
    max_unavailable: str | Unset = UNSET
    paused_at: datetime.datetime | None | Unset = UNSET
    deletion_requested_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        state_reason = self.state_reason.to_dict()

        team = self.team.to_dict()

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        queue = self.queue

        ready_replicas = self.ready_replicas

        gateway_url = self.gateway_url

        rollout = self.rollout.to_dict()

        revisions = []
        for revisions_item_data in self.revisions:
            revisions_item = revisions_item_data.to_dict()
            revisions.append(revisions_item)

        route: None | str | Unset
        if isinstance(self.route, Unset):
            route = UNSET
        else:
            route = self.route

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        replica_count = self.replica_count

        max_surge = self.max_surge

        max_unavailable = self.max_unavailable

        paused_at: None | str | Unset
        if isinstance(self.paused_at, Unset):
            paused_at = UNSET
        elif isinstance(self.paused_at, datetime.datetime):
            paused_at = self.paused_at.isoformat()
        else:
            paused_at = self.paused_at

        deletion_requested_at: None | str | Unset
        if isinstance(self.deletion_requested_at, Unset):
            deletion_requested_at = UNSET
        elif isinstance(self.deletion_requested_at, datetime.datetime):
            deletion_requested_at = self.deletion_requested_at.isoformat()
        else:
            deletion_requested_at = self.deletion_requested_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "state_reason": state_reason,
                "team": team,
                "created_by": created_by,
                "created_at": created_at,
                "queue": queue,
                "ready_replicas": ready_replicas,
                "gateway_url": gateway_url,
                "rollout": rollout,
                "revisions": revisions,
            }
        )
        if route is not UNSET:
            field_dict["route"] = route
        if state is not UNSET:
            field_dict["state"] = state
        if replica_count is not UNSET:
            field_dict["replica_count"] = replica_count
        if max_surge is not UNSET:
            field_dict["max_surge"] = max_surge
        if max_unavailable is not UNSET:
            field_dict["max_unavailable"] = max_unavailable
        if paused_at is not UNSET:
            field_dict["paused_at"] = paused_at
        if deletion_requested_at is not UNSET:
            field_dict["deletion_requested_at"] = deletion_requested_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason
        from ..models.revision import Revision
        from ..models.rollout_status import RolloutStatus

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        state_reason = Reason.from_dict(d.pop("state_reason"))

        team = ObjectReference.from_dict(d.pop("team"))

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        queue = d.pop("queue")

        ready_replicas = d.pop("ready_replicas")

        gateway_url = d.pop("gateway_url")

        rollout = RolloutStatus.from_dict(d.pop("rollout"))

        revisions = []
        _revisions = d.pop("revisions")
        for revisions_item_data in _revisions:
            revisions_item = Revision.from_dict(revisions_item_data)

            revisions.append(revisions_item)

        def _parse_route(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        route = _parse_route(d.pop("route", UNSET))

        _state = d.pop("state", UNSET)
        state: DeploymentState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_deployment_state(_state)

        replica_count = d.pop("replica_count", UNSET)

        max_surge = d.pop("max_surge", UNSET)

        max_unavailable = d.pop("max_unavailable", UNSET)

        def _parse_paused_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                paused_at_type_0 = datetime.datetime.fromisoformat(data)

                return paused_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        paused_at = _parse_paused_at(d.pop("paused_at", UNSET))

        def _parse_deletion_requested_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deletion_requested_at_type_0 = datetime.datetime.fromisoformat(data)

                return deletion_requested_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        deletion_requested_at = _parse_deletion_requested_at(d.pop("deletion_requested_at", UNSET))

        deployment_detail = cls(
            uid=uid,
            name=name,
            state_reason=state_reason,
            team=team,
            created_by=created_by,
            created_at=created_at,
            queue=queue,
            ready_replicas=ready_replicas,
            gateway_url=gateway_url,
            rollout=rollout,
            revisions=revisions,
            route=route,
            state=state,
            replica_count=replica_count,
            max_surge=max_surge,
            max_unavailable=max_unavailable,
            paused_at=paused_at,
            deletion_requested_at=deletion_requested_at,
        )

        return deployment_detail
