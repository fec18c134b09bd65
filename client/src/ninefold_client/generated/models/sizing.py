from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.sizing_task_enum import SizingTaskEnum, check_sizing_task_enum

if TYPE_CHECKING:
    from ..models.memory_part import MemoryPart
    from ..models.sizing_finding import SizingFinding
    from ..models.sizing_plan import SizingPlan
    from ..models.sizing_spec import SizingSpec


T = TypeVar("T", bound="Sizing")


@_attrs_define
class Sizing:
    """Sizing"""

    model: str
    parameters: int
    active_parameters: int
    attention: str
    chip: str
    spec: SizingSpec
    task: SizingTaskEnum
    parts: list[MemoryPart]
    not_at_once: int
    total: int
    limit: int | None
    fits: bool
    legal: bool
    plan: SizingPlan
    proposed: bool
    replicas: int
    cache_bytes_per_token: float
    largest_context: int | None
    largest_concurrency: int | None
    largest_batch: int | None
    findings: list[SizingFinding]

    def to_dict(self) -> dict[str, Any]:
        model = self.model

        parameters = self.parameters

        active_parameters = self.active_parameters

        attention = self.attention

        chip = self.chip

        spec = self.spec.to_dict()

        task: str = self.task

        parts = []
        for parts_item_data in self.parts:
            parts_item = parts_item_data.to_dict()
            parts.append(parts_item)

        not_at_once = self.not_at_once

        total = self.total

        limit: int | None
        limit = self.limit

        fits = self.fits

        legal = self.legal

        plan = self.plan.to_dict()

        proposed = self.proposed

        replicas = self.replicas

        cache_bytes_per_token = self.cache_bytes_per_token

        largest_context: int | None
        largest_context = self.largest_context

        largest_concurrency: int | None
        largest_concurrency = self.largest_concurrency

        largest_batch: int | None
        largest_batch = self.largest_batch

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "model": model,
                "parameters": parameters,
                "active_parameters": active_parameters,
                "attention": attention,
                "chip": chip,
                "spec": spec,
                "task": task,
                "parts": parts,
                "not_at_once": not_at_once,
                "total": total,
                "limit": limit,
                "fits": fits,
                "legal": legal,
                "plan": plan,
                "proposed": proposed,
                "replicas": replicas,
                "cache_bytes_per_token": cache_bytes_per_token,
                "largest_context": largest_context,
                "largest_concurrency": largest_concurrency,
                "largest_batch": largest_batch,
                "findings": findings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.memory_part import MemoryPart
        from ..models.sizing_finding import SizingFinding
        from ..models.sizing_plan import SizingPlan
        from ..models.sizing_spec import SizingSpec

        d = dict(src_dict)
        model = d.pop("model")

        parameters = d.pop("parameters")

        active_parameters = d.pop("active_parameters")

        attention = d.pop("attention")

        chip = d.pop("chip")

        spec = SizingSpec.from_dict(d.pop("spec"))

        task = check_sizing_task_enum(d.pop("task"))

        parts = []
        _parts = d.pop("parts")
        for parts_item_data in _parts:
            parts_item = MemoryPart.from_dict(parts_item_data)

            parts.append(parts_item)

        not_at_once = d.pop("not_at_once")

        total = d.pop("total")

        def _parse_limit(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        limit = _parse_limit(d.pop("limit"))

        fits = d.pop("fits")

        legal = d.pop("legal")

        plan = SizingPlan.from_dict(d.pop("plan"))

        proposed = d.pop("proposed")

        replicas = d.pop("replicas")

        cache_bytes_per_token = d.pop("cache_bytes_per_token")

        def _parse_largest_context(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        largest_context = _parse_largest_context(d.pop("largest_context"))

        def _parse_largest_concurrency(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        largest_concurrency = _parse_largest_concurrency(d.pop("largest_concurrency"))

        def _parse_largest_batch(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        largest_batch = _parse_largest_batch(d.pop("largest_batch"))

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = SizingFinding.from_dict(findings_item_data)

            findings.append(findings_item)

        sizing = cls(
            model=model,
            parameters=parameters,
            active_parameters=active_parameters,
            attention=attention,
            chip=chip,
            spec=spec,
            task=task,
            parts=parts,
            not_at_once=not_at_once,
            total=total,
            limit=limit,
            fits=fits,
            legal=legal,
            plan=plan,
            proposed=proposed,
            replicas=replicas,
            cache_bytes_per_token=cache_bytes_per_token,
            largest_context=largest_context,
            largest_concurrency=largest_concurrency,
            largest_batch=largest_batch,
            findings=findings,
        )

        return sizing
