"""The guided form of a quantization: model, calibration data, scheme, and tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.jobs.models import Job
from apps.jobs.web.form_fields import (
    RadiosWithDisabledChoices,
    SelectWithDisabledChoices,
    disable_choices,
)
from apps.jobs.web.forms import RETRY_NAMES, GuidedJobForm, number_field, same_names
from controlplane.domain.common.spec_fields import FieldLimit
from controlplane.domain.datasets.splits import Split
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.specs.evaluation import SCHEMES
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine, EngineTask

_SCHEME_LABELS: Mapping[str, Any] = {
    "w8a8-smoothquant": _("8-bit weights and activations (SmoothQuant): half the size"),
    "w4a16-awq": _("4-bit weights (AWQ): a quarter of the size"),
    "fp8-dynamic": _("8-bit floats (FP8): half the size, no calibration"),
}
_SPLITS = [(split.value, split.value) for split in Split]


def quantization_engines() -> tuple[Engine, ...]:
    """Installed engines that support quantization."""
    engines = (adapter_registry.engine_by_name(name) for name in adapter_registry.engine_names())
    return tuple(engine for engine in engines if EngineTask.QUANTIZE in engine.tasks)


class QuantizeForm(GuidedJobForm):
    kind = JobKind.QUANTIZE
    spec_fields: ClassVar[Mapping[str, str]] = {
        **same_names("scheme", "calibration_split", "split"),
        "perplexity_increase": "tolerance.perplexity_increase",
        "accuracy_drop": "tolerance.accuracy_drop",
        **same_names("metrics", "limit", "calibration_rows", "max_length", "smoothing_strength"),
        **same_names("group_size", "ignore", "max_new_tokens", "batch_size", "seed"),
    }
    finding_fields: ClassVar[Mapping[str, str]] = {
        "chips": "chip",
        "model": "model_version",
        "tolerance.perplexity_increase": "perplexity_increase",
        "tolerance.accuracy_drop": "accuracy_drop",
    }
    more = (*list(spec_fields)[5:], "name", "priority", "secret_variables", *RETRY_NAMES)
    field_order = ("team", "model_version", "output_name", "dataset_version")
    steps: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": ("team", "model_version", "output_name"),
        "data": ("dataset_version", "calibration_split", "split"),
        "method": ("scheme", "engine", "chip", "cards"),
        "tolerance": ("perplexity_increase", "accuracy_drop"),
    }

    scheme = forms.ChoiceField(
        label=_("Quantization scheme"),
        choices=[(name, _SCHEME_LABELS[name]) for name in SCHEMES],
        widget=RadiosWithDisabledChoices(attrs={"class": "form-check-input"}),
        required=False,
    )
    engine = forms.ChoiceField(label=_("Engine"), widget=SelectWithDisabledChoices)
    calibration_split = forms.ChoiceField(
        label=_("Calibration split"),
        choices=_SPLITS,
        required=False,
        help_text=_("Number of examples that set the activation ranges."),
    )
    split = forms.ChoiceField(
        label=_("Evaluation split"),
        choices=_SPLITS,
        required=False,
        help_text=_("Number of examples evaluated before and after quantization."),
    )
    perplexity_increase = number_field(
        _("Max perplexity increase"),
        help_text=_("Relative increase of the perplexity; 0.05 is 5 percent."),
    )
    accuracy_drop = number_field(
        _("Max decrease of other metrics"),
        help_text=_("Absolute decrease of the metric; 0.01 is one percentage point."),
    )
    metrics = forms.MultipleChoiceField(
        label=_("Metrics"),
        choices=[
            ("perplexity", _("perplexity of the expected answers; lower is better")),
            ("exact_match", _("exact match: share of answers that equal the expected answer")),
            ("label_accuracy", _("label accuracy: share of correct labels")),
        ],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    limit = number_field(_("Max evaluation examples"), whole=True)
    calibration_rows = number_field(_("Calibration examples"), whole=True)
    max_length = number_field(_("Max example tokens"), whole=True)
    smoothing_strength = number_field(_("Smoothing strength (SmoothQuant)"))
    group_size = number_field(
        _("Group size (AWQ)"),
        whole=True,
        help_text=_(
            "Number of weights that share one scale. Empty: the largest size "
            "that divides the model's layers."
        ),
    )
    ignore = forms.CharField(
        label=_("Excluded layers"),
        required=False,
        help_text=_(
            "Layer names, separated by commas, that are not quantized. Default: the output head."
        ),
        widget=forms.TextInput(attrs={"placeholder": "lm_head", "spellcheck": "false"}),
    )
    max_new_tokens = number_field(_("Max answer tokens"), whole=True)
    batch_size = number_field(_("Batch size"), whole=True)
    seed = number_field(_("Seed"), whole=True)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        engines = quantization_engines()
        choice = self.choice("engine")
        choice.choices = [(engine.name, engine.profile().title) for engine in engines]
        choice.initial = self.engine_name()
        self._disable_unavailable(user, engines)

    def engine_name(self) -> str:
        """The selected engine, or the first that supports quantization."""
        known = [engine.name for engine in quantization_engines()]
        selected = self.data.get("engine") or self.initial.get("engine")
        return selected if selected in known else known[0]

    def _disable_unavailable(self, user: User, engines: tuple[Engine, ...]) -> None:
        """Disable values that the selected engine, chip or model does not support, with the reason."""
        chip = adapter_registry.all_chips().get(
            self.data.get("chip") or self.initial.get("chip") or "cpu"
        )
        model = self._model_facts(user)
        chosen = adapter_registry.engine_by_name(self.engine_name())
        limits = chosen.limits(EngineTask.QUANTIZE, chip=chip, model=model)
        disable_choices(self.fields["scheme"], _reasons_by_choice(limits, "scheme"))
        if chip is not None:
            reasons = {
                each.name: each.unsupported_reason(EngineTask.QUANTIZE, chip) for each in engines
            }
            disable_choices(
                self.fields["engine"], {name: reason for name, reason in reasons.items() if reason}
            )

    def _suggested_output_name(self, user: User) -> str:
        facts = self._model_facts(user)
        return f"{facts.name.rsplit(' ', 1)[0]}-quantized"[:80] if facts else ""

    def clean_ignore(self) -> list[str]:
        """:raises ValidationError: never; what a name may be the engine says."""
        text: str = self.cleaned_data["ignore"]
        return [name.strip() for name in text.split(",") if name.strip()]

    @classmethod
    def initial_values_of_job(cls, job: Job) -> dict[str, Any]:
        values = super().initial_values_of_job(job)
        return {**values, "engine": job.engine, "ignore": ", ".join(values["ignore"] or ())}

    @property
    def tolerance_fields(self) -> list[forms.BoundField]:
        return self.step_fields("tolerance")

    def default_name(self) -> str:
        return f"quantize {self.cleaned_data['model_version']}"[:120]


def _reasons_by_choice(limits: tuple[FieldLimit, ...], field: str) -> dict[str, str]:
    return {
        value: limit.reason for limit in limits if limit.field == field for value in limit.values
    }
