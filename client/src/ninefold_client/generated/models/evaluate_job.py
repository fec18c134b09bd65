from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.evaluate_job_kind import EvaluateJobKind, check_evaluate_job_kind
from ..models.job_state import JobState, check_job_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.evaluate_spec import EvaluateSpec
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason
    from ..models.retry_policy import RetryPolicy
    from ..models.role_shape import RoleShape


T = TypeVar("T", bound="EvaluateJob")


@_attrs_define
class EvaluateJob:
    """EvaluateJob"""

    uid: str
    name: str
    kind: EvaluateJobKind
    state_reason: Reason
    team: ObjectReference
    created_by: str
    created_at: datetime.datetime
    engine: str
    spec: EvaluateSpec
    model_version: None | ObjectReference
    dataset_version: None | ObjectReference
    output_shared: bool
    queue: str
    chips: list[str]
    asked_chips: list[str] | None
    shape: list[RoleShape]
    retry_policy: RetryPolicy
    state: JobState | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET
    code: None | str | Unset = UNSET
    output_name: str | Unset = UNSET
    priority: int | Unset = UNSET
    priority_class: None | str | Unset = UNSET
    run_seconds: int | None | Unset = UNSET
    cancel_requested_at: datetime.datetime | None | Unset = UNSET
    cancel_requested_by: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        name = self.name

        kind: str = self.kind

        state_reason = self.state_reason.to_dict()

        team = self.team.to_dict()

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        engine = self.engine

        spec = self.spec.to_dict()

        model_version: dict[str, Any] | None
        if isinstance(self.model_version, ObjectReference):
            model_version = self.model_version.to_dict()
        else:
            model_version = self.model_version

        dataset_version: dict[str, Any] | None
        if isinstance(self.dataset_version, ObjectReference):
            dataset_version = self.dataset_version.to_dict()
        else:
            dataset_version = self.dataset_version

        output_shared = self.output_shared

        queue = self.queue

        chips = self.chips

        asked_chips: list[str] | None
        if isinstance(self.asked_chips, list):
            asked_chips = self.asked_chips

        else:
            asked_chips = self.asked_chips

        shape = []
        for shape_item_data in self.shape:
            shape_item = shape_item_data.to_dict()
            shape.append(shape_item)

        retry_policy = self.retry_policy.to_dict()

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

        code: None | str | Unset
        if isinstance(self.code, Unset):
            code = UNSET
        else:
            code = self.code

        output_name: str | Unset
        if isinstance(self.output_name, Unset):
            output_name = UNSET
        else:
            output_name = self.output_name

        priority = self.priority

        priority_class: None | str | Unset
        if isinstance(self.priority_class, Unset):
            priority_class = UNSET
        else:
            priority_class = self.priority_class

        run_seconds: int | None | Unset
        if isinstance(self.run_seconds, Unset):
            run_seconds = UNSET
        else:
            run_seconds = self.run_seconds

        cancel_requested_at: None | str | Unset
        if isinstance(self.cancel_requested_at, Unset):
            cancel_requested_at = UNSET
        elif isinstance(self.cancel_requested_at, datetime.datetime):
            cancel_requested_at = self.cancel_requested_at.isoformat()
        else:
            cancel_requested_at = self.cancel_requested_at

        cancel_requested_by = self.cancel_requested_by

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "kind": kind,
                "state_reason": state_reason,
                "team": team,
                "created_by": created_by,
                "created_at": created_at,
                "engine": engine,
                "spec": spec,
                "model_version": model_version,
                "dataset_version": dataset_version,
                "output_shared": output_shared,
                "queue": queue,
                "chips": chips,
                "asked_chips": asked_chips,
                "shape": shape,
                "retry_policy": retry_policy,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if code is not UNSET:
            field_dict["code"] = code
        if output_name is not UNSET:
            field_dict["output_name"] = output_name
        if priority is not UNSET:
            field_dict["priority"] = priority
        if priority_class is not UNSET:
            field_dict["priority_class"] = priority_class
        if run_seconds is not UNSET:
            field_dict["run_seconds"] = run_seconds
        if cancel_requested_at is not UNSET:
            field_dict["cancel_requested_at"] = cancel_requested_at
        if cancel_requested_by is not UNSET:
            field_dict["cancel_requested_by"] = cancel_requested_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluate_spec import EvaluateSpec
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason
        from ..models.retry_policy import RetryPolicy
        from ..models.role_shape import RoleShape

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        kind = check_evaluate_job_kind(d.pop("kind"))

        state_reason = Reason.from_dict(d.pop("state_reason"))

        team = ObjectReference.from_dict(d.pop("team"))

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        engine = d.pop("engine")

        spec = EvaluateSpec.from_dict(d.pop("spec"))

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

        def _parse_dataset_version(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                dataset_version_type_0 = ObjectReference.from_dict(data)

                return dataset_version_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        dataset_version = _parse_dataset_version(d.pop("dataset_version"))

        output_shared = d.pop("output_shared")

        queue = d.pop("queue")

        chips = cast(list[str], d.pop("chips"))

        def _parse_asked_chips(data: object) -> list[str] | None:
            if data is None:
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                asked_chips_type_0 = cast(list[str], data)

                return asked_chips_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None, data)

        asked_chips = _parse_asked_chips(d.pop("asked_chips"))

        shape = []
        _shape = d.pop("shape")
        for shape_item_data in _shape:
            shape_item = RoleShape.from_dict(shape_item_data)

            shape.append(shape_item)

        retry_policy = RetryPolicy.from_dict(d.pop("retry_policy"))

        _state = d.pop("state", UNSET)
        state: JobState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_job_state(_state)

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

        def _parse_code(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        code = _parse_code(d.pop("code", UNSET))

        def _parse_output_name(data: object) -> str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(str | Unset, data)

        output_name = _parse_output_name(d.pop("output_name", UNSET))

        priority = d.pop("priority", UNSET)

        def _parse_priority_class(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        priority_class = _parse_priority_class(d.pop("priority_class", UNSET))

        def _parse_run_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        run_seconds = _parse_run_seconds(d.pop("run_seconds", UNSET))

        def _parse_cancel_requested_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                cancel_requested_at_type_0 = datetime.datetime.fromisoformat(data)

                return cancel_requested_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        cancel_requested_at = _parse_cancel_requested_at(d.pop("cancel_requested_at", UNSET))

        cancel_requested_by = d.pop("cancel_requested_by", UNSET)

        evaluate_job = cls(
            uid=uid,
            name=name,
            kind=kind,
            state_reason=state_reason,
            team=team,
            created_by=created_by,
            created_at=created_at,
            engine=engine,
            spec=spec,
            model_version=model_version,
            dataset_version=dataset_version,
            output_shared=output_shared,
            queue=queue,
            chips=chips,
            asked_chips=asked_chips,
            shape=shape,
            retry_policy=retry_policy,
            state=state,
            ended_at=ended_at,
            code=code,
            output_name=output_name,
            priority=priority,
            priority_class=priority_class,
            run_seconds=run_seconds,
            cancel_requested_at=cancel_requested_at,
            cancel_requested_by=cancel_requested_by,
        )

        return evaluate_job
