from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.script_job_submit_request_kind import (
    ScriptJobSubmitRequestKind,
    check_script_job_submit_request_kind,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.retry_policy_request import RetryPolicyRequest
    from ..models.script_spec_request import ScriptSpecRequest
    from ..models.secret_variable_input_request import SecretVariableInputRequest


T = TypeVar("T", bound="ScriptJobSubmitRequest")


@_attrs_define
class ScriptJobSubmitRequest:
    """The request for something that a team will own."""

    kind: ScriptJobSubmitRequestKind
    name: str
    team: str | Unset = UNSET
    spec: ScriptSpecRequest | Unset = UNSET
    engine: str | Unset = UNSET
    model_version: str | Unset = UNSET
    dataset_version: str | Unset = UNSET
    code: str | Unset = UNSET
    output_name: str | Unset = UNSET
    output_shared: bool | Unset = UNSET
    queue: str | Unset = "default"
    chips: list[str] | Unset = UNSET
    cards: int | Unset = UNSET
    memory: int | Unset = UNSET
    priority: int | Unset = UNSET
    priority_class: str | Unset = UNSET
    secret_variables: list[SecretVariableInputRequest] | Unset = UNSET
    retry_policy: RetryPolicyRequest | Unset = UNSET
    run_seconds: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        name = self.name

        team = self.team

        spec: dict[str, Any] | Unset = UNSET
        if not isinstance(self.spec, Unset):
            spec = self.spec.to_dict()

        engine = self.engine

        model_version = self.model_version

        dataset_version = self.dataset_version

        code = self.code

        output_name = self.output_name

        output_shared = self.output_shared

        queue = self.queue

        chips: list[str] | Unset = UNSET
        if not isinstance(self.chips, Unset):
            chips = self.chips

        cards = self.cards

        memory = self.memory

        priority = self.priority

        priority_class = self.priority_class

        secret_variables: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.secret_variables, Unset):
            secret_variables = []
            for secret_variables_item_data in self.secret_variables:
                secret_variables_item = secret_variables_item_data.to_dict()
                secret_variables.append(secret_variables_item)

        retry_policy: dict[str, Any] | Unset = UNSET
        if not isinstance(self.retry_policy, Unset):
            retry_policy = self.retry_policy.to_dict()

        run_seconds: int | None | Unset
        if isinstance(self.run_seconds, Unset):
            run_seconds = UNSET
        else:
            run_seconds = self.run_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "name": name,
            }
        )
        if team is not UNSET:
            field_dict["team"] = team
        if spec is not UNSET:
            field_dict["spec"] = spec
        if engine is not UNSET:
            field_dict["engine"] = engine
        if model_version is not UNSET:
            field_dict["model_version"] = model_version
        if dataset_version is not UNSET:
            field_dict["dataset_version"] = dataset_version
        if code is not UNSET:
            field_dict["code"] = code
        if output_name is not UNSET:
            field_dict["output_name"] = output_name
        if output_shared is not UNSET:
            field_dict["output_shared"] = output_shared
        if queue is not UNSET:
            field_dict["queue"] = queue
        if chips is not UNSET:
            field_dict["chips"] = chips
        if cards is not UNSET:
            field_dict["cards"] = cards
        if memory is not UNSET:
            field_dict["memory"] = memory
        if priority is not UNSET:
            field_dict["priority"] = priority
        if priority_class is not UNSET:
            field_dict["priority_class"] = priority_class
        if secret_variables is not UNSET:
            field_dict["secret_variables"] = secret_variables
        if retry_policy is not UNSET:
            field_dict["retry_policy"] = retry_policy
        if run_seconds is not UNSET:
            field_dict["run_seconds"] = run_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.retry_policy_request import RetryPolicyRequest
        from ..models.script_spec_request import ScriptSpecRequest
        from ..models.secret_variable_input_request import SecretVariableInputRequest

        d = dict(src_dict)
        kind = check_script_job_submit_request_kind(d.pop("kind"))

        name = d.pop("name")

        team = d.pop("team", UNSET)

        _spec = d.pop("spec", UNSET)
        spec: ScriptSpecRequest | Unset
        if isinstance(_spec, Unset):
            spec = UNSET
        else:
            spec = ScriptSpecRequest.from_dict(_spec)

        engine = d.pop("engine", UNSET)

        model_version = d.pop("model_version", UNSET)

        dataset_version = d.pop("dataset_version", UNSET)

        code = d.pop("code", UNSET)

        output_name = d.pop("output_name", UNSET)

        output_shared = d.pop("output_shared", UNSET)

        queue = d.pop("queue", UNSET)

        chips = cast(list[str], d.pop("chips", UNSET))

        cards = d.pop("cards", UNSET)

        memory = d.pop("memory", UNSET)

        priority = d.pop("priority", UNSET)

        priority_class = d.pop("priority_class", UNSET)

        _secret_variables = d.pop("secret_variables", UNSET)
        secret_variables: list[SecretVariableInputRequest] | Unset = UNSET
        if _secret_variables is not UNSET:
            secret_variables = []
            for secret_variables_item_data in _secret_variables:
                secret_variables_item = SecretVariableInputRequest.from_dict(
                    secret_variables_item_data
                )

                secret_variables.append(secret_variables_item)

        _retry_policy = d.pop("retry_policy", UNSET)
        retry_policy: RetryPolicyRequest | Unset
        if isinstance(_retry_policy, Unset):
            retry_policy = UNSET
        else:
            retry_policy = RetryPolicyRequest.from_dict(_retry_policy)

        def _parse_run_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        run_seconds = _parse_run_seconds(d.pop("run_seconds", UNSET))

        script_job_submit_request = cls(
            kind=kind,
            name=name,
            team=team,
            spec=spec,
            engine=engine,
            model_version=model_version,
            dataset_version=dataset_version,
            code=code,
            output_name=output_name,
            output_shared=output_shared,
            queue=queue,
            chips=chips,
            cards=cards,
            memory=memory,
            priority=priority,
            priority_class=priority_class,
            secret_variables=secret_variables,
            retry_policy=retry_policy,
            run_seconds=run_seconds,
        )

        return script_job_submit_request
