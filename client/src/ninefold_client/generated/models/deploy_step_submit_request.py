from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.deploy_step_submit_request_kind import (
    DeployStepSubmitRequestKind,
    check_deploy_step_submit_request_kind,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.gate_request import GateRequest
    from ..models.serve_spec_request import ServeSpecRequest


T = TypeVar("T", bound="DeployStepSubmitRequest")


@_attrs_define
class DeployStepSubmitRequest:
    """DeployStepSubmitRequest"""

    kind: DeployStepSubmitRequestKind
    engine: str | Unset = UNSET
    spec: ServeSpecRequest | Unset = UNSET
    chips: list[str] | Unset = UNSET
    cards: int | Unset = UNSET
    dataset_version: str | Unset = UNSET
    output_name: str | Unset = UNSET
    deployment_name: str | Unset = UNSET
    replicas: int | Unset = UNSET
    gate: GateRequest | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.gate_request import GateRequest

        kind: str = self.kind

        engine = self.engine

        spec: dict[str, Any] | Unset = UNSET
        if not isinstance(self.spec, Unset):
            spec = self.spec.to_dict()

        chips: list[str] | Unset = UNSET
        if not isinstance(self.chips, Unset):
            chips = self.chips

        cards = self.cards

        dataset_version = self.dataset_version

        output_name = self.output_name

        deployment_name = self.deployment_name

        replicas = self.replicas

        gate: dict[str, Any] | None | Unset
        if isinstance(self.gate, Unset):
            gate = UNSET
        elif isinstance(self.gate, GateRequest):
            gate = self.gate.to_dict()
        else:
            gate = self.gate

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
            }
        )
        if engine is not UNSET:
            field_dict["engine"] = engine
        if spec is not UNSET:
            field_dict["spec"] = spec
        if chips is not UNSET:
            field_dict["chips"] = chips
        if cards is not UNSET:
            field_dict["cards"] = cards
        if dataset_version is not UNSET:
            field_dict["dataset_version"] = dataset_version
        if output_name is not UNSET:
            field_dict["output_name"] = output_name
        if deployment_name is not UNSET:
            field_dict["deployment_name"] = deployment_name
        if replicas is not UNSET:
            field_dict["replicas"] = replicas
        if gate is not UNSET:
            field_dict["gate"] = gate

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.gate_request import GateRequest
        from ..models.serve_spec_request import ServeSpecRequest

        d = dict(src_dict)
        kind = check_deploy_step_submit_request_kind(d.pop("kind"))

        engine = d.pop("engine", UNSET)

        _spec = d.pop("spec", UNSET)
        spec: ServeSpecRequest | Unset
        if isinstance(_spec, Unset):
            spec = UNSET
        else:
            spec = ServeSpecRequest.from_dict(_spec)

        chips = cast(list[str], d.pop("chips", UNSET))

        cards = d.pop("cards", UNSET)

        dataset_version = d.pop("dataset_version", UNSET)

        output_name = d.pop("output_name", UNSET)

        deployment_name = d.pop("deployment_name", UNSET)

        replicas = d.pop("replicas", UNSET)

        def _parse_gate(data: object) -> GateRequest | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                gate_type_0 = GateRequest.from_dict(data)

                return gate_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(GateRequest | None | Unset, data)

        gate = _parse_gate(d.pop("gate", UNSET))

        deploy_step_submit_request = cls(
            kind=kind,
            engine=engine,
            spec=spec,
            chips=chips,
            cards=cards,
            dataset_version=dataset_version,
            output_name=output_name,
            deployment_name=deployment_name,
            replicas=replicas,
            gate=gate,
        )

        return deploy_step_submit_request
