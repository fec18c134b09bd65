from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.rollout_state import RolloutState, check_rollout_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.maintenance_rollout_labels import MaintenanceRolloutLabels
    from ..models.maintenance_rollout_node import MaintenanceRolloutNode
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="MaintenanceRollout")


@_attrs_define
class MaintenanceRollout:
    """MaintenanceRollout"""

    uid: str
    name: str
    cluster: ObjectReference
    labels: MaintenanceRolloutLabels
    argv: list[str]
    created_by: str
    created_at: datetime.datetime
    error: Reason
    nodes: list[MaintenanceRolloutNode]
    domain_label: str | Unset = UNSET
    state: RolloutState | Unset = UNSET
    image: str | Unset = UNSET
    run_within: int | Unset = UNSET
    burn_in: bool | Unset = UNSET
    parallel: int | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        cluster = self.cluster.to_dict()

        labels = self.labels.to_dict()

        argv = self.argv

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        error = self.error.to_dict()

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)

        domain_label = self.domain_label

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        image = self.image

        run_within = self.run_within

        burn_in = self.burn_in

        parallel = self.parallel

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "cluster": cluster,
                "labels": labels,
                "argv": argv,
                "created_by": created_by,
                "created_at": created_at,
                "error": error,
                "nodes": nodes,
            }
        )
        if domain_label is not UNSET:
            field_dict["domain_label"] = domain_label
        if state is not UNSET:
            field_dict["state"] = state
        if image is not UNSET:
            field_dict["image"] = image
        if run_within is not UNSET:
            field_dict["run_within"] = run_within
        if burn_in is not UNSET:
            field_dict["burn_in"] = burn_in
        if parallel is not UNSET:
            field_dict["parallel"] = parallel
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.maintenance_rollout_labels import MaintenanceRolloutLabels
        from ..models.maintenance_rollout_node import MaintenanceRolloutNode
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        cluster = ObjectReference.from_dict(d.pop("cluster"))

        labels = MaintenanceRolloutLabels.from_dict(d.pop("labels"))

        argv = cast(list[str], d.pop("argv"))

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        error = Reason.from_dict(d.pop("error"))

        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in _nodes:
            nodes_item = MaintenanceRolloutNode.from_dict(nodes_item_data)

            nodes.append(nodes_item)

        domain_label = d.pop("domain_label", UNSET)

        _state = d.pop("state", UNSET)
        state: RolloutState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_rollout_state(_state)

        image = d.pop("image", UNSET)

        run_within = d.pop("run_within", UNSET)

        burn_in = d.pop("burn_in", UNSET)

        parallel = d.pop("parallel", UNSET)

        def _parse_ended_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ended_at = _parse_ended_at(d.pop("ended_at", UNSET))

        maintenance_rollout = cls(
            uid=uid,
            name=name,
            cluster=cluster,
            labels=labels,
            argv=argv,
            created_by=created_by,
            created_at=created_at,
            error=error,
            nodes=nodes,
            domain_label=domain_label,
            state=state,
            image=image,
            run_within=run_within,
            burn_in=burn_in,
            parallel=parallel,
            ended_at=ended_at,
        )

        return maintenance_rollout
