"""The guided form of a quantization: model, calibration data, scheme, and tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from django import forms

from apps.accounts.models import User
from apps.jobs.web.form_fields import SpecFormField, flatten_fields
from apps.jobs.web.forms import GuidedJobForm
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.specs.evaluation import QUANTIZE


class QuantizeForm(GuidedJobForm):
    kind = JobKind.QUANTIZE
    field_order = ("team", "model_version", "output_name", "dataset_version")
    steps: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": ("team", "model_version", "output_name"),
        "data": ("dataset_version", "calibration_split", "split"),
        "method": ("scheme", "engine", "chip", "cards"),
        "tolerance": ("tolerance_perplexity_increase", "tolerance_accuracy_drop"),
    }

    @property
    def engine_fields(self) -> tuple[SpecFormField, ...]:
        """Fields of all engines: one that the selected engine does not support is refused with the reason."""
        return tuple(flatten_fields(QUANTIZE))

    def _suggested_output_name(self, user: User) -> str:
        facts = self._model_facts(user)
        return f"{facts.name.rsplit(' ', 1)[0]}-quantized"[:80] if facts else ""

    @property
    def tolerance_fields(self) -> list[forms.BoundField]:
        return self.step_fields("tolerance")

    def default_name(self) -> str:
        return f"quantize {self.cleaned_data['model_version']}"[:120]
