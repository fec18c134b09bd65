from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.queue_state import QueueState, check_queue_state

if TYPE_CHECKING:
    from ..models.queue_document_entitlements import QueueDocumentEntitlements


T = TypeVar("T", bound="QueueDocument")


@_attrs_define
class QueueDocument:
    """A queue as it was kept."""

    uid: str
    team: str
    entitlements: QueueDocumentEntitlements
    name: str
    state: QueueState
    description: str
    weight: float
    borrows: bool
    lends: bool
    reclaims: bool
    preempts: bool
    max_running_per_user: int | None
    parent: str

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        team = self.team

        entitlements = self.entitlements.to_dict()

        name = self.name

        state: str = self.state

        description = self.description

        weight = self.weight

        borrows = self.borrows

        lends = self.lends

        reclaims = self.reclaims

        preempts = self.preempts

        max_running_per_user: int | None
        max_running_per_user = self.max_running_per_user

        parent = self.parent

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "team": team,
                "entitlements": entitlements,
                "name": name,
                "state": state,
                "description": description,
                "weight": weight,
                "borrows": borrows,
                "lends": lends,
                "reclaims": reclaims,
                "preempts": preempts,
                "max_running_per_user": max_running_per_user,
                "parent": parent,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_document_entitlements import QueueDocumentEntitlements

        d = dict(src_dict)
        uid = d.pop("uid")

        team = d.pop("team")

        entitlements = QueueDocumentEntitlements.from_dict(d.pop("entitlements"))

        name = d.pop("name")

        state = check_queue_state(d.pop("state"))

        description = d.pop("description")

        weight = d.pop("weight")

        borrows = d.pop("borrows")

        lends = d.pop("lends")

        reclaims = d.pop("reclaims")

        preempts = d.pop("preempts")

        def _parse_max_running_per_user(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        max_running_per_user = _parse_max_running_per_user(d.pop("max_running_per_user"))

        parent = d.pop("parent")

        queue_document = cls(
            uid=uid,
            team=team,
            entitlements=entitlements,
            name=name,
            state=state,
            description=description,
            weight=weight,
            borrows=borrows,
            lends=lends,
            reclaims=reclaims,
            preempts=preempts,
            max_running_per_user=max_running_per_user,
            parent=parent,
        )

        return queue_document
