from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.step_submit_request import StepSubmitRequest


T = TypeVar("T", bound="PipelineSubmitRequest")


@_attrs_define
class PipelineSubmitRequest:
    """The request for something that a team will own."""

    name: str
    model_version: str
    steps: list[StepSubmitRequest]
    team: str | Unset = UNSET
    queue: str | Unset = "default"

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        model_version = self.model_version

        steps = []
        for steps_item_data in self.steps:
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
        from ..models.step_submit_request import StepSubmitRequest  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        model_version = d.pop("model_version")

        steps = []
        _steps = d.pop("steps")
        for steps_item_data in _steps:
            steps_item = StepSubmitRequest.from_dict(steps_item_data)

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
