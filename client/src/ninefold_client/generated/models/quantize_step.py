from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.quantize_step_kind import QuantizeStepKind, check_quantize_step_kind
from ..models.step_state import StepState, check_step_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_object import JsonObject
    from ..models.object_reference import ObjectReference
    from ..models.quantize_spec import QuantizeSpec
    from ..models.quantize_step_gate_type_0 import QuantizeStepGateType0
    from ..models.reason import Reason


T = TypeVar("T", bound="QuantizeStep")


@_attrs_define
class QuantizeStep:
    """QuantizeStep"""

    uid: str
    number: int
    kind: QuantizeStepKind
    state_reason: Reason
    spec: QuantizeSpec
    chips: list[str]
    dataset_version: None | ObjectReference
    model_version: None | ObjectReference
    job: None | ObjectReference
    deployment: None | ObjectReference
    output_version: None | ObjectReference
    metrics: JsonObject
    gate: None | QuantizeStepGateType0
    gate_verdict: Reason
    state: StepState | Unset = UNSET
    engine: str | Unset = UNSET
    cards: int | Unset = UNSET
    output_name: str | Unset = UNSET
    deployment_name: str | Unset = UNSET
    replicas: int | Unset = UNSET
    gate_passed: bool | None | Unset = UNSET
    overridden_by: str | Unset = UNSET
    override_reason: str | Unset = UNSET
    began_at: datetime.datetime | None | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference
        from ..models.quantize_step_gate_type_0 import QuantizeStepGateType0

        uid = self.uid

        number = self.number

        kind: str = self.kind

        state_reason = self.state_reason.to_dict()

        spec = self.spec.to_dict()

        chips = self.chips

        dataset_version: dict[str, Any] | None
        if isinstance(self.dataset_version, ObjectReference):
            dataset_version = self.dataset_version.to_dict()
        else:
            dataset_version = self.dataset_version

        model_version: dict[str, Any] | None
        if isinstance(self.model_version, ObjectReference):
            model_version = self.model_version.to_dict()
        else:
            model_version = self.model_version

        job: dict[str, Any] | None
        if isinstance(self.job, ObjectReference):
            job = self.job.to_dict()
        else:
            job = self.job

        deployment: dict[str, Any] | None
        if isinstance(self.deployment, ObjectReference):
            deployment = self.deployment.to_dict()
        else:
            deployment = self.deployment

        output_version: dict[str, Any] | None
        if isinstance(self.output_version, ObjectReference):
            output_version = self.output_version.to_dict()
        else:
            output_version = self.output_version

        metrics = self.metrics.to_dict()

        gate: dict[str, Any] | None
        if isinstance(self.gate, QuantizeStepGateType0):
            gate = self.gate.to_dict()
        else:
            gate = self.gate

        gate_verdict = self.gate_verdict.to_dict()

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        engine = self.engine

        cards = self.cards

        output_name: str | Unset
        if isinstance(self.output_name, Unset):
            output_name = UNSET
        else:
            output_name = self.output_name

        deployment_name: str | Unset
        if isinstance(self.deployment_name, Unset):
            deployment_name = UNSET
        else:
            deployment_name = self.deployment_name

        replicas = self.replicas

        gate_passed: bool | None | Unset
        if isinstance(self.gate_passed, Unset):
            gate_passed = UNSET
        else:
            gate_passed = self.gate_passed

        overridden_by = self.overridden_by

        override_reason = self.override_reason

        began_at: None | str | Unset
        if isinstance(self.began_at, Unset):
            began_at = UNSET
        elif isinstance(self.began_at, datetime.datetime):
            began_at = self.began_at.isoformat()
        else:
            began_at = self.began_at

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
                "number": number,
                "kind": kind,
                "state_reason": state_reason,
                "spec": spec,
                "chips": chips,
                "dataset_version": dataset_version,
                "model_version": model_version,
                "job": job,
                "deployment": deployment,
                "output_version": output_version,
                "metrics": metrics,
                "gate": gate,
                "gate_verdict": gate_verdict,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if engine is not UNSET:
            field_dict["engine"] = engine
        if cards is not UNSET:
            field_dict["cards"] = cards
        if output_name is not UNSET:
            field_dict["output_name"] = output_name
        if deployment_name is not UNSET:
            field_dict["deployment_name"] = deployment_name
        if replicas is not UNSET:
            field_dict["replicas"] = replicas
        if gate_passed is not UNSET:
            field_dict["gate_passed"] = gate_passed
        if overridden_by is not UNSET:
            field_dict["overridden_by"] = overridden_by
        if override_reason is not UNSET:
            field_dict["override_reason"] = override_reason
        if began_at is not UNSET:
            field_dict["began_at"] = began_at
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.json_object import JsonObject
        from ..models.object_reference import ObjectReference
        from ..models.quantize_spec import QuantizeSpec
        from ..models.quantize_step_gate_type_0 import QuantizeStepGateType0
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        number = d.pop("number")

        kind = check_quantize_step_kind(d.pop("kind"))

        state_reason = Reason.from_dict(d.pop("state_reason"))

        spec = QuantizeSpec.from_dict(d.pop("spec"))

        chips = cast(list[str], d.pop("chips"))

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

        def _parse_job(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                job_type_0 = ObjectReference.from_dict(data)

                return job_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        job = _parse_job(d.pop("job"))

        def _parse_deployment(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                deployment_type_0 = ObjectReference.from_dict(data)

                return deployment_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        deployment = _parse_deployment(d.pop("deployment"))

        def _parse_output_version(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                output_version_type_0 = ObjectReference.from_dict(data)

                return output_version_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        output_version = _parse_output_version(d.pop("output_version"))

        metrics = JsonObject.from_dict(d.pop("metrics"))

        def _parse_gate(data: object) -> None | QuantizeStepGateType0:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                gate_type_0 = QuantizeStepGateType0.from_dict(data)

                return gate_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QuantizeStepGateType0, data)

        gate = _parse_gate(d.pop("gate"))

        gate_verdict = Reason.from_dict(d.pop("gate_verdict"))

        _state = d.pop("state", UNSET)
        state: StepState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_step_state(_state)

        engine = d.pop("engine", UNSET)

        cards = d.pop("cards", UNSET)

        def _parse_output_name(data: object) -> str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(str | Unset, data)

        output_name = _parse_output_name(d.pop("output_name", UNSET))

        def _parse_deployment_name(data: object) -> str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(str | Unset, data)

        deployment_name = _parse_deployment_name(d.pop("deployment_name", UNSET))

        replicas = d.pop("replicas", UNSET)

        def _parse_gate_passed(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        gate_passed = _parse_gate_passed(d.pop("gate_passed", UNSET))

        overridden_by = d.pop("overridden_by", UNSET)

        override_reason = d.pop("override_reason", UNSET)

        def _parse_began_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                began_at_type_0 = datetime.datetime.fromisoformat(data)

                return began_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        began_at = _parse_began_at(d.pop("began_at", UNSET))

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

        quantize_step = cls(
            uid=uid,
            number=number,
            kind=kind,
            state_reason=state_reason,
            spec=spec,
            chips=chips,
            dataset_version=dataset_version,
            model_version=model_version,
            job=job,
            deployment=deployment,
            output_version=output_version,
            metrics=metrics,
            gate=gate,
            gate_verdict=gate_verdict,
            state=state,
            engine=engine,
            cards=cards,
            output_name=output_name,
            deployment_name=deployment_name,
            replicas=replicas,
            gate_passed=gate_passed,
            overridden_by=overridden_by,
            override_reason=override_reason,
            began_at=began_at,
            ended_at=ended_at,
        )

        return quantize_step
