"""Labelled settings and metrics of a step for display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.jobs.web.job_page import spec_rows
from apps.workflows.models import Step
from controlplane.web.templatetags.ninefold import filesize, humanized, number


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledValue:
    """A label and a formatted value."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStepRow:
    step: Step
    settings: tuple[LabelledValue, ...]
    metrics: tuple[LabelledValue, ...]


def pipeline_step_row(step: Step) -> PipelineStepRow:
    """The step with its settings and metrics."""
    return PipelineStepRow(
        step=step,
        settings=format_settings(step.spec),
        metrics=tuple(
            LabelledValue(name=humanized(name), value=_format_metric(name, value))
            for name, value in sorted(step.metrics.items())
        ),
    )


def format_settings(spec: Mapping[str, Any]) -> tuple[LabelledValue, ...]:
    """The fields of a spec; nested fields have the name of their group as prefix."""
    return tuple(
        LabelledValue(name=humanized(name), value=_format_setting(value))
        for name, value in spec_rows(spec)
    )


def _format_setting(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(humanized(one) if isinstance(one, str) else str(one) for one in value)
    return number(value)


def _format_metric(name: str, value: float) -> str:
    # Sizes are in bytes.
    return filesize(int(value)) if "size" in name.split("_") else number(value)
