from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.queue_change_after import QueueChangeAfter
    from ..models.queue_change_before import QueueChangeBefore
    from ..models.queue_difference import QueueDifference


T = TypeVar("T", bound="QueueChange")


@_attrs_define
class QueueChange:
    """QueueChange"""

    uid: str
    created_at: datetime.datetime
    actor: str
    action: str
    differences: list[QueueDifference]
    before: QueueChangeBefore
    after: QueueChangeAfter
    note: str | Unset = UNSET
    reverts: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        created_at = self.created_at.isoformat()

        actor = self.actor

        action = self.action

        differences = []
        for differences_item_data in self.differences:
            differences_item = differences_item_data.to_dict()
            differences.append(differences_item)

        before = self.before.to_dict()

        after = self.after.to_dict()

        note = self.note

        reverts: None | str | Unset
        if isinstance(self.reverts, Unset):
            reverts = UNSET
        else:
            reverts = self.reverts

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "created_at": created_at,
                "actor": actor,
                "action": action,
                "differences": differences,
                "before": before,
                "after": after,
            }
        )
        if note is not UNSET:
            field_dict["note"] = note
        if reverts is not UNSET:
            field_dict["reverts"] = reverts

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_change_after import QueueChangeAfter
        from ..models.queue_change_before import QueueChangeBefore
        from ..models.queue_difference import QueueDifference

        d = dict(src_dict)
        uid = d.pop("uid")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        actor = d.pop("actor")

        action = d.pop("action")

        differences = []
        _differences = d.pop("differences")
        for differences_item_data in _differences:
            differences_item = QueueDifference.from_dict(differences_item_data)

            differences.append(differences_item)

        before = QueueChangeBefore.from_dict(d.pop("before"))

        after = QueueChangeAfter.from_dict(d.pop("after"))

        note = d.pop("note", UNSET)

        def _parse_reverts(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reverts = _parse_reverts(d.pop("reverts", UNSET))

        queue_change = cls(
            uid=uid,
            created_at=created_at,
            actor=actor,
            action=action,
            differences=differences,
            before=before,
            after=after,
            note=note,
            reverts=reverts,
        )

        return queue_change
