"""A step in words: its settings and figures as its reader sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.jobs.web.job_page import spec_rows
from apps.workflows.models import Step
from controlplane.web.templatetags.ninefold import figure, filesize, humanized


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Something with a value, both in words."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    step: Step
    settings: tuple[Told, ...]
    figures: tuple[Told, ...]


def row_of(step: Step) -> StepRow:
    """The step with what was set for it and what it measured."""
    return StepRow(
        step=step,
        settings=settings_told(step.spec),
        figures=tuple(
            Told(name=humanized(name), value=_measured(name, value))
            for name, value in sorted(step.figures.items())
        ),
    )


def settings_told(spec: Mapping[str, Any]) -> tuple[Told, ...]:
    """The fields of a spec, those of a group behind the group's name."""
    return tuple(Told(name=humanized(name), value=_set(value)) for name, value in spec_rows(spec))


def _set(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(humanized(one) if isinstance(one, str) else str(one) for one in value)
    return figure(value)


def _measured(name: str, value: float) -> str:
    # Sizes are told in bytes.
    return filesize(int(value)) if "size" in name.split("_") else figure(value)
