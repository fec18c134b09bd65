from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_object import JsonObject
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="Evaluation")


@_attrs_define
class Evaluation:
    """Evaluation"""

    uid: str
    model_version: ObjectReference
    dataset_version: ObjectReference
    split: str
    metrics: JsonObject
    artifact: str
    attempt_uid: str
    created_at: datetime.datetime
    job_uid: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        model_version = self.model_version.to_dict()

        dataset_version = self.dataset_version.to_dict()

        split = self.split

        metrics = self.metrics.to_dict()

        artifact = self.artifact

        attempt_uid = self.attempt_uid

        created_at = self.created_at.isoformat()

        job_uid = self.job_uid

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "model_version": model_version,
                "dataset_version": dataset_version,
                "split": split,
                "metrics": metrics,
                "artifact": artifact,
                "attempt_uid": attempt_uid,
                "created_at": created_at,
            }
        )
        if job_uid is not UNSET:
            field_dict["job_uid"] = job_uid

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.json_object import JsonObject
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        uid = d.pop("uid")

        model_version = ObjectReference.from_dict(d.pop("model_version"))

        dataset_version = ObjectReference.from_dict(d.pop("dataset_version"))

        split = d.pop("split")

        metrics = JsonObject.from_dict(d.pop("metrics"))

        artifact = d.pop("artifact")

        attempt_uid = d.pop("attempt_uid")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        job_uid = d.pop("job_uid", UNSET)

        evaluation = cls(
            uid=uid,
            model_version=model_version,
            dataset_version=dataset_version,
            split=split,
            metrics=metrics,
            artifact=artifact,
            attempt_uid=attempt_uid,
            created_at=created_at,
            job_uid=job_uid,
        )

        return evaluation
