from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.weight_download_state_enum import (
    WeightDownloadStateEnum,
    check_weight_download_state_enum,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="WeightDownload")


@_attrs_define
class WeightDownload:
    """WeightDownload"""

    uid: str
    model_version: ObjectReference
    cluster: ObjectReference
    node: str
    message: Reason
    size: int
    downloaded: int
    team: ObjectReference
    created_by: str
    created_at: datetime.datetime
    state: WeightDownloadStateEnum | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        model_version = self.model_version.to_dict()

        cluster = self.cluster.to_dict()

        node = self.node

        message = self.message.to_dict()

        size = self.size

        downloaded = self.downloaded

        team = self.team.to_dict()

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

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
                "model_version": model_version,
                "cluster": cluster,
                "node": node,
                "message": message,
                "size": size,
                "downloaded": downloaded,
                "team": team,
                "created_by": created_by,
                "created_at": created_at,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        model_version = ObjectReference.from_dict(d.pop("model_version"))

        cluster = ObjectReference.from_dict(d.pop("cluster"))

        node = d.pop("node")

        message = Reason.from_dict(d.pop("message"))

        size = d.pop("size")

        downloaded = d.pop("downloaded")

        team = ObjectReference.from_dict(d.pop("team"))

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        _state = d.pop("state", UNSET)
        state: WeightDownloadStateEnum | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_weight_download_state_enum(_state)

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

        weight_download = cls(
            uid=uid,
            model_version=model_version,
            cluster=cluster,
            node=node,
            message=message,
            size=size,
            downloaded=downloaded,
            team=team,
            created_by=created_by,
            created_at=created_at,
            state=state,
            ended_at=ended_at,
        )

        return weight_download
