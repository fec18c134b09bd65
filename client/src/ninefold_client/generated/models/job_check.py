from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.evaluate_spec import EvaluateSpec
    from ..models.finding import Finding
    from ..models.finetune_spec import FinetuneSpec
    from ..models.quantize_spec import QuantizeSpec
    from ..models.script_spec import ScriptSpec


T = TypeVar("T", bound="JobCheck")


@_attrs_define
class JobCheck:
    """JobCheck"""

    accepted: bool
    findings: list[Finding]
    spec: EvaluateSpec | FinetuneSpec | None | QuantizeSpec | ScriptSpec
    chips: list[str]

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluate_spec import EvaluateSpec
        from ..models.finetune_spec import FinetuneSpec
        from ..models.quantize_spec import QuantizeSpec
        from ..models.script_spec import ScriptSpec

        accepted = self.accepted

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        spec: dict[str, Any] | None
        if isinstance(self.spec, FinetuneSpec):
            spec = self.spec.to_dict()
        elif isinstance(self.spec, EvaluateSpec):
            spec = self.spec.to_dict()
        elif isinstance(self.spec, QuantizeSpec):
            spec = self.spec.to_dict()
        elif isinstance(self.spec, ScriptSpec):
            spec = self.spec.to_dict()
        else:
            spec = self.spec

        chips = self.chips

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "accepted": accepted,
                "findings": findings,
                "spec": spec,
                "chips": chips,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluate_spec import EvaluateSpec
        from ..models.finding import Finding
        from ..models.finetune_spec import FinetuneSpec
        from ..models.quantize_spec import QuantizeSpec
        from ..models.script_spec import ScriptSpec

        d = dict(src_dict)
        accepted = d.pop("accepted")

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = Finding.from_dict(findings_item_data)

            findings.append(findings_item)

        def _parse_spec(
            data: object,
        ) -> EvaluateSpec | FinetuneSpec | None | QuantizeSpec | ScriptSpec:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                spec_type_0_type_0 = FinetuneSpec.from_dict(data)

                return spec_type_0_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                spec_type_0_type_1 = EvaluateSpec.from_dict(data)

                return spec_type_0_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                spec_type_0_type_2 = QuantizeSpec.from_dict(data)

                return spec_type_0_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                spec_type_0_type_3 = ScriptSpec.from_dict(data)

                return spec_type_0_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EvaluateSpec | FinetuneSpec | None | QuantizeSpec | ScriptSpec, data)

        spec = _parse_spec(d.pop("spec"))

        chips = cast(list[str], d.pop("chips"))

        job_check = cls(
            accepted=accepted,
            findings=findings,
            spec=spec,
            chips=chips,
        )

        return job_check
