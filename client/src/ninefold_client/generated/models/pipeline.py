from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.pipeline_state import PipelineState, check_pipeline_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.deploy_step import DeployStep
    from ..models.evaluate_step import EvaluateStep
    from ..models.finetune_step import FinetuneStep
    from ..models.object_reference import ObjectReference
    from ..models.quantize_step import QuantizeStep
    from ..models.reason import Reason


T = TypeVar("T", bound="Pipeline")


@_attrs_define
class Pipeline:
    """Pipeline"""

    uid: str
    name: str
    state_reason: Reason
    team: ObjectReference
    created_by: str
    created_at: datetime.datetime
    model_version: ObjectReference
    queue: str
    steps: list[DeployStep | EvaluateStep | FinetuneStep | QuantizeStep]
    state: PipelineState | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET
    cancel_requested_at: datetime.datetime | None | Unset = UNSET
    cancel_requested_by: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluate_step import EvaluateStep
        from ..models.finetune_step import FinetuneStep
        from ..models.quantize_step import QuantizeStep

        uid = self.uid

        name = self.name

        state_reason = self.state_reason.to_dict()

        team = self.team.to_dict()

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        model_version = self.model_version.to_dict()

        queue = self.queue

        steps = []
        for steps_item_data in self.steps:
            steps_item: dict[str, Any]
            if isinstance(steps_item_data, FinetuneStep):
                steps_item = steps_item_data.to_dict()
            elif isinstance(steps_item_data, EvaluateStep):
                steps_item = steps_item_data.to_dict()
            elif isinstance(steps_item_data, QuantizeStep):
                steps_item = steps_item_data.to_dict()
            else:
                steps_item = steps_item_data.to_dict()

            steps.append(steps_item)

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

        cancel_requested_at: None | str | Unset
        if isinstance(self.cancel_requested_at, Unset):
            cancel_requested_at = UNSET
        elif isinstance(self.cancel_requested_at, datetime.datetime):
            cancel_requested_at = self.cancel_requested_at.isoformat()
        else:
            cancel_requested_at = self.cancel_requested_at

        cancel_requested_by: None | str | Unset
        if isinstance(self.cancel_requested_by, Unset):
            cancel_requested_by = UNSET
        else:
            cancel_requested_by = self.cancel_requested_by

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "state_reason": state_reason,
                "team": team,
                "created_by": created_by,
                "created_at": created_at,
                "model_version": model_version,
                "queue": queue,
                "steps": steps,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if cancel_requested_at is not UNSET:
            field_dict["cancel_requested_at"] = cancel_requested_at
        if cancel_requested_by is not UNSET:
            field_dict["cancel_requested_by"] = cancel_requested_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.deploy_step import DeployStep
        from ..models.evaluate_step import EvaluateStep
        from ..models.finetune_step import FinetuneStep
        from ..models.object_reference import ObjectReference
        from ..models.quantize_step import QuantizeStep
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        state_reason = Reason.from_dict(d.pop("state_reason"))

        team = ObjectReference.from_dict(d.pop("team"))

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        model_version = ObjectReference.from_dict(d.pop("model_version"))

        queue = d.pop("queue")

        steps = []
        _steps = d.pop("steps")
        for steps_item_data in _steps:

            def _parse_steps_item(
                data: object,
            ) -> DeployStep | EvaluateStep | FinetuneStep | QuantizeStep:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_step_type_0 = FinetuneStep.from_dict(data)

                    return componentsschemas_step_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_step_type_1 = EvaluateStep.from_dict(data)

                    return componentsschemas_step_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_step_type_2 = QuantizeStep.from_dict(data)

                    return componentsschemas_step_type_2
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_step_type_3 = DeployStep.from_dict(data)

                return componentsschemas_step_type_3

            steps_item = _parse_steps_item(steps_item_data)

            steps.append(steps_item)

        _state = d.pop("state", UNSET)
        state: PipelineState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_pipeline_state(_state)

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

        def _parse_cancel_requested_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cancel_requested_by = _parse_cancel_requested_by(d.pop("cancel_requested_by", UNSET))

        pipeline = cls(
            uid=uid,
            name=name,
            state_reason=state_reason,
            team=team,
            created_by=created_by,
            created_at=created_at,
            model_version=model_version,
            queue=queue,
            steps=steps,
            state=state,
            ended_at=ended_at,
            cancel_requested_at=cancel_requested_at,
            cancel_requested_by=cancel_requested_by,
        )

        return pipeline
