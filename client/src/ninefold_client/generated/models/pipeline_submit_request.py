from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.deploy_step_submit_request import DeployStepSubmitRequest
    from ..models.evaluate_step_submit_request import EvaluateStepSubmitRequest
    from ..models.finetune_step_submit_request import FinetuneStepSubmitRequest
    from ..models.quantize_step_submit_request import QuantizeStepSubmitRequest


T = TypeVar("T", bound="PipelineSubmitRequest")


@_attrs_define
class PipelineSubmitRequest:
    """The request for something that a team will own."""

    name: str
    model_version: str
    steps: list[
        DeployStepSubmitRequest
        | EvaluateStepSubmitRequest
        | FinetuneStepSubmitRequest
        | QuantizeStepSubmitRequest
    ]
    team: str | Unset = UNSET
    queue: str | Unset = "default"

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluate_step_submit_request import EvaluateStepSubmitRequest
        from ..models.finetune_step_submit_request import FinetuneStepSubmitRequest
        from ..models.quantize_step_submit_request import QuantizeStepSubmitRequest

        name = self.name

        model_version = self.model_version

        steps = []
        for steps_item_data in self.steps:
            steps_item: dict[str, Any]
            if isinstance(steps_item_data, FinetuneStepSubmitRequest):
                steps_item = steps_item_data.to_dict()
            elif isinstance(steps_item_data, EvaluateStepSubmitRequest):
                steps_item = steps_item_data.to_dict()
            elif isinstance(steps_item_data, QuantizeStepSubmitRequest):
                steps_item = steps_item_data.to_dict()
            else:
                steps_item = steps_item_data.to_dict()

            steps.append(steps_item)

        team = self.team

        queue = self.queue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "model_version": model_version,
                "steps": steps,
            }
        )
        if team is not UNSET:
            field_dict["team"] = team
        if queue is not UNSET:
            field_dict["queue"] = queue

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.deploy_step_submit_request import DeployStepSubmitRequest
        from ..models.evaluate_step_submit_request import EvaluateStepSubmitRequest
        from ..models.finetune_step_submit_request import FinetuneStepSubmitRequest
        from ..models.quantize_step_submit_request import QuantizeStepSubmitRequest

        d = dict(src_dict)
        name = d.pop("name")

        model_version = d.pop("model_version")

        steps = []
        _steps = d.pop("steps")
        for steps_item_data in _steps:

            def _parse_steps_item(
                data: object,
            ) -> (
                DeployStepSubmitRequest
                | EvaluateStepSubmitRequest
                | FinetuneStepSubmitRequest
                | QuantizeStepSubmitRequest
            ):
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_step_submit_request_type_0 = (
                        FinetuneStepSubmitRequest.from_dict(data)
                    )

                    return componentsschemas_step_submit_request_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_step_submit_request_type_1 = (
                        EvaluateStepSubmitRequest.from_dict(data)
                    )

                    return componentsschemas_step_submit_request_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_step_submit_request_type_2 = (
                        QuantizeStepSubmitRequest.from_dict(data)
                    )

                    return componentsschemas_step_submit_request_type_2
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_step_submit_request_type_3 = DeployStepSubmitRequest.from_dict(
                    data
                )

                return componentsschemas_step_submit_request_type_3

            steps_item = _parse_steps_item(steps_item_data)

            steps.append(steps_item)

        team = d.pop("team", UNSET)

        queue = d.pop("queue", UNSET)

        pipeline_submit_request = cls(
            name=name,
            model_version=model_version,
            steps=steps,
            team=team,
            queue=queue,
        )

        return pipeline_submit_request
