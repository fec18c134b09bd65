from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="JobOutputs")


@_attrs_define
class JobOutputs:
    """JobOutputs"""

    model_version: None | ObjectReference
    evaluation: None | ObjectReference
    artifact: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        model_version: dict[str, Any] | None
        if isinstance(self.model_version, ObjectReference):
            model_version = self.model_version.to_dict()
        else:
            model_version = self.model_version

        evaluation: dict[str, Any] | None
        if isinstance(self.evaluation, ObjectReference):
            evaluation = self.evaluation.to_dict()
        else:
            evaluation = self.evaluation

        artifact: None | str | Unset
        if isinstance(self.artifact, Unset):
            artifact = UNSET
        else:
            artifact = self.artifact

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "model_version": model_version,
                "evaluation": evaluation,
            }
        )
        if artifact is not UNSET:
            field_dict["artifact"] = artifact

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)

        def _parse_model_version(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                model_version_type_0 = ObjectReference.from_dict(data)

                return model_version_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        model_version = _parse_model_version(d.pop("model_version"))

        def _parse_evaluation(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                evaluation_type_0 = ObjectReference.from_dict(data)

                return evaluation_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        evaluation = _parse_evaluation(d.pop("evaluation"))

        def _parse_artifact(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        artifact = _parse_artifact(d.pop("artifact", UNSET))

        job_outputs = cls(
            model_version=model_version,
            evaluation=evaluation,
            artifact=artifact,
        )

        return job_outputs
