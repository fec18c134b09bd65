"""The sections of the form of a pipeline: one step each, which can be left out.

What is left empty is named after the model or the dataset, or is as the engine recommends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.jobs.services import engine_for
from apps.jobs.web.forms import number_field
from apps.workflows.models import Step
from apps.workflows.selectors import task_of
from apps.workflows.services import StepRequest
from apps.workflows.web.words import Told, settings_told
from controlplane.domain.common.spec_fields import at_path
from controlplane.domain.datasets.splits import Split
from controlplane.domain.pipelines import ACCEPTED, Gate, Otherwise, StepKind
from controlplane.domain.specs.evaluation import METRICS, SCHEMES
from controlplane.ports import registry
from controlplane.web.forms import PlainForm

_LONGEST_SLUG = 80
_METRIC_WORDS: Mapping[str, Promise] = {
    "exact_match": _("exact match: share of answers that are right as a whole"),
    "label_accuracy": _("label accuracy: share of labels that are right"),
    "perplexity": _("perplexity: how surprised it is by the right answers"),
}
_GATE_WORDS: Mapping[str, Promise] = {
    "exact_match": _("exact match at least"),
    "label_accuracy": _("label accuracy at least"),
    "perplexity": _("perplexity at most"),
}
_SCHEME_WORDS: Mapping[str, Promise] = {
    "w8a8-smoothquant": _("8 bits (SmoothQuant)"),
    "w4a16-awq": _("4-bit weights (AWQ)"),
    "fp8-dynamic": _("8-bit floats (FP8)"),
}
_OTHERWISE: Sequence[tuple[str, Any]] = (
    (Otherwise.STOP.value, _("wait until somebody decides")),
    (Otherwise.SKIP.value, _("end here, without the rest")),
)


def _otherwise() -> forms.ChoiceField:
    return forms.ChoiceField(label=_("If it misses that"), choices=_OTHERWISE, required=False)


class SectionForm(PlainForm):
    """One step, which can be left out."""

    kind: ClassVar[StepKind]
    icon: ClassVar[str]
    title: ClassVar[Promise]
    text: ClassVar[Promise]
    #: Form field → dotted path in the spec.
    spec_fields: ClassVar[Mapping[str, str]] = {}
    finding_fields: ClassVar[Mapping[str, str]] = {"gate": "threshold"}

    wanted = forms.BooleanField(required=False, initial=True)
    #: Fields of the spec that the section does not show, of the step that is cloned.
    rest = forms.JSONField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._show_defaults()

    def _show_defaults(self) -> None:
        """What the engine takes where a field is left empty."""
        name = engine_for(task_of(self.kind), chips=())
        if name not in registry.engine_names():
            return
        task = task_of(self.kind)
        defaults = registry.engine(name).normalise(task, {})
        for field, path in self.spec_fields.items():
            value = at_path(defaults, path)
            if isinstance(self.fields[field], forms.ChoiceField):
                self.fields[field].initial = value
            elif isinstance(value, int | float):
                self.fields[field].widget.attrs["placeholder"] = f"{value:g}"

    def full_clean(self) -> None:
        """What is wrong with a step that nobody wants is not wrong."""
        super().full_clean()
        if self.is_bound and not self.cleaned_data.get("wanted"):
            self.errors.clear()

    @property
    def is_wanted(self) -> bool:
        return bool(self["wanted"].value())

    @property
    def step_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field.name != "wanted"]

    def clean_rest(self) -> dict[str, Any]:
        rest = self.cleaned_data["rest"]
        return rest if isinstance(rest, dict) else {}

    @property
    def kept(self) -> tuple[Told, ...]:
        """What the step that is cloned asks for beside the fields of the section."""
        kept = self.cleaned_data.get("rest") if self.is_bound else self.initial.get("rest")
        return settings_told(kept or {})

    def spec(self) -> dict[str, Any]:
        """What was filled in, as the engine's fields."""
        given = {path: self.cleaned_data.get(name) for name, path in self.spec_fields.items()}
        filled = {path: value for path, value in given.items() if value not in (None, "", [])}
        return {**self.cleaned_data["rest"], **filled}

    def step(self, head: Mapping[str, Any], *, named: str) -> StepRequest:
        """What the filled section asks for; ``named`` is the model that it works on."""
        return StepRequest(
            kind=self.kind,
            spec=self.spec(),
            chips=(head["chip"],),
            cards=head["cards"],
            dataset_version=None if self.kind is StepKind.DEPLOY else head["dataset_version"],
            gate=self.gate(),
        )

    def gate(self) -> Gate | None:
        return None

    @classmethod
    def initial_of(cls, step: Step) -> dict[str, Any]:
        """The fields of a section that asks for the same as the step did."""
        shown = set(cls.spec_fields.values())
        values = {name: at_path(step.spec, path) for name, path in cls.spec_fields.items()}
        values["rest"] = {name: value for name, value in step.spec.items() if name not in shown}
        gate = step.condition
        values["figure"] = gate.figure if gate else ""
        if gate is not None:
            values |= {"threshold": gate.threshold, "otherwise": gate.otherwise.value}
        return {**values, "output_name": step.output_name, "wanted": True}


class TuneForm(SectionForm):
    kind = StepKind.FINETUNE
    icon = "adjustments"
    title = _("Fine-tune")
    text = _("Teach the model from the rows of the dataset. Makes a new version.")
    spec_fields: ClassVar[Mapping[str, str]] = {
        "method": "method",
        "epochs": "epochs",
        "learning_rate": "learning_rate",
    }

    output_name = forms.SlugField(
        label=_("Name of the new model"),
        max_length=_LONGEST_SLUG,
        required=False,
        help_text=_("Empty: named after the dataset. A known name adds a version."),
    )
    method = forms.ChoiceField(
        label=_("Method"),
        choices=[("full", _("all weights")), ("lora", _("LoRA: small added weights"))],
        required=False,
    )
    epochs = number_field(_("Epochs"))
    learning_rate = number_field(_("Learning rate"))

    def step(self, head: Mapping[str, Any], *, named: str) -> StepRequest:
        dataset = head["dataset_version"].dataset.name
        output = self.cleaned_data["output_name"] or f"{dataset}-model"[:_LONGEST_SLUG]
        return replace(super().step(head, named=named), output_name=output)


class MeasureForm(SectionForm):
    kind = StepKind.EVALUATE
    icon = "chart-line"
    title = _("Evaluate")
    text = _("Measure the version on rows that it has not learned from.")
    spec_fields: ClassVar[Mapping[str, str]] = {
        "metrics": "metrics",
        "split": "split",
        "limit": "limit",
    }

    metrics = forms.MultipleChoiceField(
        label=_("Metrics"),
        choices=[(name, _METRIC_WORDS[name]) for name in METRICS],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    split = forms.ChoiceField(
        label=_("Split"), choices=[(split.value, split.value) for split in Split], required=False
    )
    limit = number_field(_("Most rows"), whole=True, help_text=_("Empty: all of them."))
    figure = forms.ChoiceField(
        label=_("Go on only if"),
        choices=[
            ("", _("in any case")),
            *((name, _GATE_WORDS[name]) for name in METRICS),
        ],
        required=False,
    )
    threshold = number_field(
        _("Threshold"), help_text=_("A share such as 0.8; for perplexity from 1.")
    )
    otherwise = _otherwise()

    def spec(self) -> dict[str, Any]:
        spec = super().spec()
        figure = self.cleaned_data.get("figure")
        metrics = spec.get("metrics")
        if figure and metrics and figure not in metrics:
            # Whoever asks for a figure wants it measured.
            spec["metrics"] = [*metrics, figure]
        return spec

    def gate(self) -> Gate | None:
        values = self.cleaned_data
        if not values["figure"]:
            return None
        return Gate(
            figure=values["figure"],
            threshold=values["threshold"],
            otherwise=Otherwise(values["otherwise"] or Otherwise.STOP),
        )


class ShrinkForm(SectionForm):
    kind = StepKind.QUANTIZE
    icon = "arrow-bar-to-down"
    title = _("Quantize")
    text = _(
        "Keep the weights in fewer bits: smaller and faster to serve. It is measured before and after."
    )
    spec_fields: ClassVar[Mapping[str, str]] = {
        "scheme": "scheme",
        "calibration_rows": "calibration_rows",
    }

    scheme = forms.ChoiceField(
        label=_("Scheme"),
        choices=[(name, _SCHEME_WORDS[name]) for name in SCHEMES],
        required=False,
    )
    output_name = forms.SlugField(
        label=_("Name of the quantized model"),
        max_length=_LONGEST_SLUG,
        required=False,
        help_text=_("Empty: the model's name with the scheme behind it."),
    )
    calibration_rows = number_field(_("Calibration rows"), whole=True)
    figure = forms.ChoiceField(
        label=_("Go on only if"),
        choices=[(ACCEPTED, _("it lost no more than it may")), ("", _("in any case"))],
        required=False,
        initial=ACCEPTED,
    )
    otherwise = _otherwise()

    def gate(self) -> Gate | None:
        values = self.cleaned_data
        if not values["figure"]:
            return None
        return Gate(figure=ACCEPTED, otherwise=Otherwise(values["otherwise"] or Otherwise.STOP))

    def step(self, head: Mapping[str, Any], *, named: str) -> StepRequest:
        bits = (self.cleaned_data.get("scheme") or SCHEMES[0]).partition("-")[0]
        ending = f"-{bits}"
        output = self.cleaned_data["output_name"] or named[: _LONGEST_SLUG - len(ending)] + ending
        return replace(super().step(head, named=named), output_name=output)


class ServeForm(SectionForm):
    kind = StepKind.DEPLOY
    icon = "rocket"
    title = _("Deploy")
    text = _("Serve the last version under a name that programs call.")

    deployment_name = forms.SlugField(
        label=_("Name of the deployment"),
        max_length=_LONGEST_SLUG,
        required=False,
        help_text=_("Empty: the model's name. A deployment of your team moves to the new version."),
    )
    replicas = forms.IntegerField(
        label=_("Replicas"),
        required=False,
        help_text=_("Empty: as many as the deployment has, or one."),
    )

    @classmethod
    def initial_of(cls, step: Step) -> dict[str, Any]:
        return {
            "wanted": True,
            "deployment_name": step.deployment_name,
            "replicas": step.replicas,
            "rest": step.spec,
        }

    def step(self, head: Mapping[str, Any], *, named: str) -> StepRequest:
        values = self.cleaned_data
        return replace(
            super().step(head, named=named),
            deployment_name=values["deployment_name"] or named,
            replicas=values.get("replicas"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One section of the form: its prefix and its class."""

    prefix: str
    form: type[SectionForm]


#: In the order in which the steps follow each other.
PLACES = (
    Place(prefix="tune", form=TuneForm),
    Place(prefix="measure", form=MeasureForm),
    Place(prefix="shrink", form=ShrinkForm),
    Place(prefix="again", form=MeasureForm),
    Place(prefix="serve", form=ServeForm),
)
