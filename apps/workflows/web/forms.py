"""The pipeline form: fields shared by all steps, then one optional section per step.

The engines validate the fields (``pipeline_check``), so only fields without a sensible default are required here.
Empty names are derived from the model or the dataset; other empty fields use the engine's defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from apps.accounts.models import User
from apps.fleet import selectors as fleet
from apps.jobs.selectors.job_comparison import flatten_spec
from apps.jobs.services import default_engine_for_task
from apps.jobs.web.form_fields import CHOICE_LABELS, METRIC_LABELS, SPLIT_CHOICES, show_default
from apps.jobs.web.forms import QueuedWorkloadForm
from apps.models import selectors as models
from apps.models.models import DatasetVersion, ModelVersion
from apps.workflows.models import Pipeline, Step
from apps.workflows.selectors import engine_task
from apps.workflows.services import PipelineRequest, StepRequest
from controlplane.domain.common.spec_fields import FieldFinding, value_at_path
from controlplane.domain.pipelines.lifecycle import (
    ACCEPTED,
    MODEL_PRODUCING_KINDS,
    Gate,
    GateFailureAction,
    StepKind,
)
from controlplane.domain.specs.evaluation import METRICS, SCHEMES
from controlplane.ports import adapter_registry
from controlplane.web.forms import StyledForm, row_choice_field
from controlplane.web.templatetags.ninefold import humanized, number

_MAX_SLUG_LENGTH = 80
_GATE_LABELS: Mapping[str, Promise] = {
    "exact_match": _("exact match of at least"),
    "label_accuracy": _("label accuracy of at least"),
    "perplexity": _("perplexity of at most"),
}
_FAILURE_ACTIONS: Sequence[tuple[str, Any]] = (
    (GateFailureAction.STOP.value, _("wait for approval")),
    (GateFailureAction.SKIP.value, _("skip the remaining steps")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledValue:
    """A label and a formatted value."""

    name: str
    value: str


def same_names(*names: str) -> dict[str, str]:
    """Fields of a form that are called as the fields of the spec are."""
    return {name: name for name in names}


def number_field(label: Any, *, whole: bool = False, help_text: Any = "") -> forms.Field:
    """A number that the engine validates. ``step=any`` keeps browsers from refusing 1e-5."""
    if whole:
        return forms.IntegerField(label=label, required=False, help_text=help_text)
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(label=label, required=False, help_text=help_text, widget=widget)


def _failure_action_field() -> forms.ChoiceField:
    return forms.ChoiceField(label=_("If the gate fails"), choices=_FAILURE_ACTIONS, required=False)


class StepForm(StyledForm):
    """An optional step."""

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
        """Show the engine's defaults as placeholders."""
        name = default_engine_for_task(engine_task(self.kind), chips=())
        if name not in adapter_registry.engine_names():
            return
        task = engine_task(self.kind)
        defaults = adapter_registry.engine_by_name(name).normalise(task, {})
        for field, path in self.spec_fields.items():
            show_default(self.fields[field], value_at_path(defaults, path))

    def full_clean(self) -> None:
        """Ignore errors of a step that is not included."""
        super().full_clean()
        if self.is_bound and not self.cleaned_data.get("wanted"):
            self.errors.clear()

    @property
    def is_included(self) -> bool:
        return bool(self["wanted"].value())

    @property
    def step_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field.name != "wanted"]

    def clean_rest(self) -> dict[str, Any]:
        rest = self.cleaned_data["rest"]
        return rest if isinstance(rest, dict) else {}

    @property
    def extra_settings(self) -> tuple[LabelledValue, ...]:
        """Spec fields of the cloned step that have no form field."""
        extra_settings = (
            self.cleaned_data.get("rest") if self.is_bound else self.initial.get("rest")
        )
        return format_settings(extra_settings or {})

    def spec(self) -> dict[str, Any]:
        """The filled fields, by the engine's field names."""
        given = {path: self.cleaned_data.get(name) for name, path in self.spec_fields.items()}
        filled = {path: value for path, value in given.items() if value not in (None, "", [])}
        return {**self.cleaned_data["rest"], **filled}

    def step(self, head: Mapping[str, Any], *, model_name: str) -> StepRequest:
        """The step request; ``model_name`` is the name of its input model."""
        return StepRequest(
            kind=self.kind,
            spec=self.spec(),
            chips=(head["chip"],),
            cards=head["cards"],
            dataset_version=None if self.kind is StepKind.DEPLOY else head["dataset_version"],
            gate=self.gate(),
        )

    def gate(self) -> Gate | None:
        """The gate behind the step; only some kinds of steps have the fields of one."""
        values = self.cleaned_data
        if not values.get("metric"):
            return None
        return Gate(
            metric=values["metric"],
            threshold=values.get("threshold"),
            otherwise=GateFailureAction(values["otherwise"] or GateFailureAction.STOP),
        )

    @classmethod
    def form_initial(cls, step: Step) -> dict[str, Any]:
        """Initial values that reproduce the step."""
        shown = set(cls.spec_fields.values())
        values = {name: value_at_path(step.spec, path) for name, path in cls.spec_fields.items()}
        values["rest"] = {name: value for name, value in step.spec.items() if name not in shown}
        gate = step.condition
        values["metric"] = gate.metric if gate else ""
        if gate is not None:
            values |= {"threshold": gate.threshold, "otherwise": gate.otherwise.value}
        return {**values, "output_name": step.output_name, "wanted": True}


class FinetuneStepForm(StepForm):
    kind = StepKind.FINETUNE
    icon = "adjustments"
    title = _("Fine-tune")
    text = _("Train the model on the dataset. Creates a new version.")
    spec_fields: ClassVar[Mapping[str, str]] = same_names("method", "epochs", "learning_rate")

    output_name = forms.SlugField(
        label=_("New model name"),
        max_length=_MAX_SLUG_LENGTH,
        required=False,
        help_text=_("Default: the dataset name. An existing name adds a version."),
    )
    method = forms.ChoiceField(
        label=_("Method"),
        choices=[("full", _("Full fine-tuning")), ("lora", _("LoRA"))],
        required=False,
    )
    epochs = number_field(_("Epochs"))
    learning_rate = number_field(_("Learning rate"))

    def step(self, head: Mapping[str, Any], *, model_name: str) -> StepRequest:
        dataset = head["dataset_version"].dataset.name
        output = self.cleaned_data["output_name"] or f"{dataset}-model"[:_MAX_SLUG_LENGTH]
        return replace(super().step(head, model_name=model_name), output_name=output)


class EvaluateStepForm(StepForm):
    kind = StepKind.EVALUATE
    icon = "chart-line"
    title = _("Evaluate")
    text = _("Evaluate the version on a dataset split.")
    spec_fields: ClassVar[Mapping[str, str]] = same_names("metrics", "split", "limit")

    metrics = forms.MultipleChoiceField(
        label=_("Metrics"),
        choices=list(METRIC_LABELS.items()),
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    split = forms.ChoiceField(
        label=_("Dataset split"),
        choices=SPLIT_CHOICES,
        required=False,
    )
    limit = number_field(_("Max examples"), whole=True, help_text=_("Empty: all examples."))
    metric = forms.ChoiceField(
        label=_("Gate"),
        choices=[
            ("", _("no gate")),
            *((name, _GATE_LABELS[name]) for name in METRICS),
        ],
        required=False,
    )
    threshold = number_field(
        _("Threshold"), help_text=_("Value from 0 to 1; for perplexity, 1 or more.")
    )
    otherwise = _failure_action_field()

    def spec(self) -> dict[str, Any]:
        spec = super().spec()
        metric = self.cleaned_data.get("metric")
        metrics = spec.get("metrics")
        if metric and metrics and metric not in metrics:
            # The gate's metric must be measured.
            spec["metrics"] = [*metrics, metric]
        return spec


class QuantizeStepForm(StepForm):
    kind = StepKind.QUANTIZE
    icon = "arrow-bar-to-down"
    title = _("Quantize")
    text = _("Store weights with fewer bits. Quality is measured before and after.")
    spec_fields: ClassVar[Mapping[str, str]] = {
        "scheme": "scheme",
        "calibration_rows": "calibration_rows",
    }

    scheme = forms.ChoiceField(
        label=_("Quantization scheme"),
        choices=[(name, CHOICE_LABELS[name]) for name in SCHEMES],
        required=False,
    )
    output_name = forms.SlugField(
        label=_("Name of the quantized model"),
        max_length=_MAX_SLUG_LENGTH,
        required=False,
        help_text=_("Default: the model name followed by the quantization scheme."),
    )
    calibration_rows = number_field(_("Calibration examples"), whole=True)
    metric = forms.ChoiceField(
        label=_("Gate"),
        choices=[(ACCEPTED, _("quality within tolerance")), ("", _("no gate"))],
        required=False,
        initial=ACCEPTED,
    )
    otherwise = _failure_action_field()

    def step(self, head: Mapping[str, Any], *, model_name: str) -> StepRequest:
        bits = (self.cleaned_data.get("scheme") or SCHEMES[0]).partition("-")[0]
        ending = f"-{bits}"
        output = (
            self.cleaned_data["output_name"]
            or model_name[: _MAX_SLUG_LENGTH - len(ending)] + ending
        )
        return replace(super().step(head, model_name=model_name), output_name=output)


class DeployStepForm(StepForm):
    kind = StepKind.DEPLOY
    icon = "rocket"
    title = _("Deploy")
    text = _("Deploy the model version of the last step.")

    deployment_name = forms.SlugField(
        label=_("Deployment name"),
        max_length=_MAX_SLUG_LENGTH,
        required=False,
        help_text=_(
            "Default: the model name. An existing deployment of the team is updated to "
            "the new version."
        ),
    )
    replicas = forms.IntegerField(
        label=_("Replicas"),
        required=False,
        help_text=_("Number of replicas. Default: that of the existing deployment, or 1."),
    )

    @classmethod
    def form_initial(cls, step: Step) -> dict[str, Any]:
        return {
            "wanted": True,
            "deployment_name": step.deployment_name,
            "replicas": step.replicas,
            "rest": step.spec,
        }

    def step(self, head: Mapping[str, Any], *, model_name: str) -> StepRequest:
        values = self.cleaned_data
        return replace(
            super().step(head, model_name=model_name),
            deployment_name=values["deployment_name"] or model_name,
            replicas=values.get("replicas"),
        )


#: Prefix and form of each section, in step order.
FORM_SECTIONS: tuple[tuple[str, type[StepForm]], ...] = (
    ("tune", FinetuneStepForm),
    ("measure", EvaluateStepForm),
    ("shrink", QuantizeStepForm),
    ("again", EvaluateStepForm),
    ("serve", DeployStepForm),
)


#: The chip if the fleet has no cards yet.
_FALLBACK_CHIP = "cpu"


class PipelineSharedForm(QueuedWorkloadForm):
    """Fields shared by all steps."""

    finding_fields: ClassVar[Mapping[str, str]] = {"chips": "chip"}
    field_order = ("team", "model_version", "dataset_version", "name", "chip", "cards")

    name = forms.CharField(
        label=_("Pipeline name"),
        max_length=120,
        required=False,
        help_text=_("Default: the dataset name."),
    )
    model_version = row_choice_field(ModelVersion, pgettext_lazy("pipeline", "Start model"))
    dataset_version = row_choice_field(
        DatasetVersion,
        _("Dataset"),
        help_text=_("Used by all steps: training, calibration and evaluation."),
    )
    chip = forms.ChoiceField(label=_("Chip"))
    cards = forms.IntegerField(label=_("Cards per step"), initial=1)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        for name, rows in (
            ("model_version", models.model_versions_usable(user)),
            ("dataset_version", models.dataset_versions_usable(user)),
        ):
            self.model_choice_field(name).queryset = rows
            newest = rows.order_by("-pk").values_list("uid", flat=True).first()
            if not self.is_bound and newest:
                # The newest one is the most likely choice.
                self.initial.setdefault(name, newest)
        cards = fleet.cards_by_chip()
        # Chips with the most usable cards first.
        names = sorted(cards, key=lambda each: (-cards[each]["usable"], each)) or [_FALLBACK_CHIP]
        self.choice("chip").choices = [(each, each) for each in names]


class PipelineForm:
    """The shared fields and the sections as one form."""

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        user: User,
        initial: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        known = initial or {}
        self.is_bound = data is not None
        self.head = PipelineSharedForm(data, user=user, initial=dict(known.get("", {})))
        self.sections: list[StepForm] = [
            form(data, prefix=prefix, initial=dict(known.get(prefix, {})))
            for prefix, form in FORM_SECTIONS
        ]

    def is_valid(self) -> bool:
        # A list, not a generator: all forms are validated.
        return all([self.head.is_valid(), *(section.is_valid() for section in self.sections)])

    @property
    def included_sections(self) -> list[StepForm]:
        return [section for section in self.sections if section.is_included]

    def request(self) -> PipelineRequest:
        """The pipeline request of the filled form."""
        head = self.head.cleaned_data
        model_name: str = head["model_version"].line.name
        steps: list[StepRequest] = []
        for section in self.included_sections:
            step = section.step(head, model_name=model_name)
            model_name = step.output_name if step.kind in MODEL_PRODUCING_KINDS else model_name
            steps.append(step)
        return PipelineRequest(
            name=head["name"] or head["dataset_version"].dataset.name,
            model_version=head["model_version"],
            queue=head["queue"],
            steps=tuple(steps),
        )

    def add_findings(self, findings: Iterable[FieldFinding]) -> None:
        """Add each finding to its field: of a step in its section, of all steps in the shared form."""
        included = self.included_sections
        for finding in findings:
            first, _dot, rest = finding.field.partition(".")
            section, _dot, field = rest.partition(".")
            of_a_step = first == "steps" and section.isdecimal()
            if not of_a_step:
                self.head.add_findings([finding])
            elif PipelineSharedForm.finding_fields.get(field, field) not in self.head.fields:
                included[int(section) - 1].add_findings([replace(finding, field=field)])
            elif finding.message not in map(str, chain(*self.head.errors.values())):
                self.head.add_findings([replace(finding, field=field)])

    def errors_by_field(self) -> Iterator[tuple[str, Any, list[str]]]:
        """Field name in the page, its label, and its errors."""
        for form in (self.head, *self.sections):
            title = form.title if isinstance(form, StepForm) else ""
            for name, label, errors in form.labelled_errors:
                yield form.add_prefix(name), label or title, errors


def form_supports_pipeline(pipeline: Pipeline) -> bool:
    """Whether the form has a section for each step of the pipeline, in order."""
    return not _steps_by_form_section(list(pipeline.steps.all()))[1]


def _steps_by_form_section(steps: list[Step]) -> tuple[dict[str, Step], list[Step]]:
    """The steps by section prefix, and the steps without a section."""
    left, found = list(steps), {}
    for prefix, form in FORM_SECTIONS:
        if left and left[0].kind == form.kind:
            found[prefix] = left.pop(0)
    return found, left


def pipeline_form_initial(pipeline: Pipeline) -> dict[str, dict[str, Any]]:
    """Initial values that reproduce the pipeline."""
    steps = list(pipeline.steps.all())
    data = next((step.dataset_version for step in steps if step.dataset_version), None)
    head: dict[str, Any] = {
        "team": pipeline.team.uid,
        "name": pipeline.name,
        "model_version": pipeline.model_version.uid,
        "dataset_version": data.uid if data else None,
        "chip": steps[0].chips[0],
        "cards": steps[0].cards,
    }
    placed, _left = _steps_by_form_section(steps)
    return {
        "": head,
        **{
            prefix: form.form_initial(placed[prefix]) if prefix in placed else {"wanted": False}
            for prefix, form in FORM_SECTIONS
        },
    }


def format_settings(spec: Mapping[str, Any]) -> tuple[LabelledValue, ...]:
    """The fields of a spec; nested fields have the name of their group as prefix."""
    return tuple(
        LabelledValue(name=humanized(name), value=_format_setting(value))
        for name, value in sorted(flatten_spec(spec).items())
    )


def _format_setting(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(humanized(one) if isinstance(one, str) else str(one) for one in value)
    return number(value)
