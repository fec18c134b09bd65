"""What somebody wants run: one form for each kind of job.

A field that is left empty is left out of the spec, so that what the engine recommends counts; the
form shows that as the placeholder. What is allowed in a field only the engine says (``job_check``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.jobs.models import Job
from apps.jobs.services import PREFERRED, JobRequest
from apps.jobs.web.chip_choices import FleetChips
from apps.jobs.web.limited_choices import LimitedSelect
from apps.jobs.web.priorities import PriorityField
from apps.jobs.web.queued import QueuedForm
from apps.jobs.web.secret_fields import SecretVariablesField
from apps.jobs.web.spec_fields import PlacedField, flat, form_field, show_default
from apps.models import selectors as models
from apps.models.models import Artifact, DatasetVersion, ModelVersion
from controlplane.domain import retries
from controlplane.domain.claims import GangShape
from controlplane.domain.datasets.splits import Split
from controlplane.domain.fields import at_path, put_at
from controlplane.domain.jobs import JobKind
from controlplane.domain.models import ModelState
from controlplane.domain.specs.evaluating import fitting_metrics, split_to_answer
from controlplane.ports import registry
from controlplane.ports.engines import ModelFacts, Task

Row = TypeVar("Row", ModelVersion, DatasetVersion)

#: Form fields of the retry policy, folded away in every form.
RETRY_FIELDS: tuple[PlacedField, ...] = tuple(flat(retries.FIELDS, f"{retries.FIELD}."))
RETRY_NAMES = tuple(each.name for each in RETRY_FIELDS)


class JobForm(QueuedForm):
    """What all kinds have in common."""

    kind: ClassVar[JobKind]
    #: Form field → dotted path in the spec.
    spec_fields: ClassVar[Mapping[str, str]] = {}
    finding_fields: ClassVar[Mapping[str, str]] = {"chips": "chip"}

    name = forms.CharField(label=_("Name of the job"), max_length=120, required=False)
    chip = forms.ChoiceField(label=_("Chip"), initial="any", widget=LimitedSelect)
    cards = forms.IntegerField(label=_("Cards"), initial=1)
    priority = PriorityField()
    secret_variables = SecretVariablesField()

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self._facts_known: dict[str, ModelFacts | None] = {}
        self.choice("chip").choices = self.fleet_chips.choices(chosen=self.chosen("chip"))
        self.initial["priority"] = self.initial.get("priority") or 0
        priority = self.fields["priority"]
        if isinstance(priority, PriorityField):
            priority.offer(user=user, chosen=self.chosen("priority"))
        self._add_fields(user)
        self._add_retry_fields()
        self._show_defaults(user)

    def chosen(self, name: str) -> str:
        """What was chosen for that field so far, right or wrong; empty where nothing was."""
        return str(self.data.get(name) or self.initial.get(name) or "")

    def preferred_chip(self) -> str:
        """The chip that it would run on if it could choose now; empty where there is none."""
        return self.fleet_chips.preferred(
            self.chosen("chip") or "any",
            engine=registry.engine(self.engine_name()),
            task=Task(self.kind),
        )

    @cached_property
    def fleet_chips(self) -> FleetChips:
        return FleetChips.counted()

    def paths(self) -> Mapping[str, str]:
        """Form field → dotted path in the spec."""
        return self.spec_fields

    def _add_fields(self, user: User) -> None:
        """Fields that are known only now."""

    def _add_retry_fields(self) -> None:
        for each in RETRY_FIELDS:
            field = form_field(each.field)
            self.dress(field)
            show_default(field, each.field.default)
            self.fields[each.name] = field

    def _show_defaults(self, user: User) -> None:
        """What the engine takes where a field is left empty, for the model that is chosen already."""
        engine, task = registry.engine(self.engine_name()), Task(self.kind)
        recommended = engine.recommended(task, model=self._facts(user))
        defaults = engine.normalise(task, {**recommended, **self._chosen()})
        for name, path in self.paths().items():
            value = at_path(defaults, path)
            field = self.fields[name]
            show_default(field, value)
            # What a clone leaves open is the default too.
            if isinstance(field, forms.ChoiceField) and self.initial.get(name) is None:
                self.initial.pop(name, None)

    def engine_name(self) -> str:
        """The engine that runs it."""
        return PREFERRED

    def _chosen(self) -> Mapping[str, Any]:
        """What was chosen already and changes the defaults of other fields."""
        return {}

    def _facts(self, user: User) -> ModelFacts | None:
        """Of the model that is chosen already; asked for once."""
        uid = self.chosen("model_version")
        if uid not in self._facts_known:
            version = models.model_versions_usable(user).filter(uid=uid).first() if uid else None
            self._facts_known[uid] = models.model_facts(version) if version else None
        return self._facts_known[uid]

    def spec(self) -> dict[str, Any]:
        """What was filled in, as the engine's fields."""
        spec: dict[str, Any] = {}
        for name, path in self.paths().items():
            value = self.cleaned_data.get(name)
            if value not in (None, "", []):
                put_at(spec, path, value)
        return spec

    def retry_policy(self) -> dict[str, Any]:
        """What was filled in of the retry policy."""
        shown = RETRY_NAMES[0] in self.data
        values = {each.field.name: self.cleaned_data.get(each.name) for each in RETRY_FIELDS}
        # No cause at all is refused rather than replaced by the default.
        return {
            name: each
            for name, each in values.items()
            if each or each == 0 or (shown and each == [])
        }

    def default_name(self) -> str:
        raise NotImplementedError

    @classmethod
    def initial_of(cls, job: Job) -> dict[str, Any]:
        """The fields of a form that asks for the same as the job did."""
        values: dict[str, Any] = {
            "team": job.team.uid,
            "name": job.name,
            "chip": (job.asked_chips or job.chips)[0],
            "cards": GangShape.from_json(job.shape).cards,
            "model_version": job.model_version.uid if job.model_version else None,
            "dataset_version": job.dataset_version.uid if job.dataset_version else None,
            "output_name": job.output_name,
            "priority": job.priority,
            # Names only: whoever clones a job enters the values again.
            "secret_variables": [each.name for each in job.secret_variables.all()],
        }
        for name, path in cls.spec_fields.items():
            values[name] = at_path(job.spec, path)
        policy = job.resolved_retry_policy.as_json()
        values |= {each.name: policy[each.field.name] for each in RETRY_FIELDS}
        return values

    def request(self, *, code: Artifact | None = None) -> JobRequest:
        """The request that the filled form makes."""
        values = self.cleaned_data
        return JobRequest(
            kind=self.kind,
            name=values["name"] or self.default_name(),
            spec=self.spec(),
            queue=values["queue"],
            engine=self.engine_name(),
            model_version=values.get("model_version"),
            dataset_version=values.get("dataset_version"),
            code=code,
            output_name=values.get("output_name", ""),
            chips=(values["chip"],),
            cards=values["cards"],
            priority=values["priority"] or 0,
            run_seconds=values.get("maximum_run_time_seconds"),
            retry_policy=self.retry_policy(),
            secret_variables=values.get("secret_variables") or {},
        )

    def requests(self, *, code: Artifact | None = None) -> list[JobRequest]:
        """All that the filled form makes, what was asked for first."""
        return [self.request(code=code)]


class ModelJobForm(JobForm):
    """A job that takes a model version and a dataset version."""

    model_version = forms.ModelChoiceField(
        label=_("Model"),
        queryset=ModelVersion.objects.none(),
        to_field_name="uid",
        empty_label=_("choose one"),
    )
    dataset_version = forms.ModelChoiceField(
        label=_("Dataset"),
        queryset=DatasetVersion.objects.none(),
        to_field_name="uid",
        empty_label=_("choose one"),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        versions, datasets = (
            models.model_versions_usable(user),
            models.dataset_versions_usable(user),
        )
        if not args:
            given = kwargs.get("initial") or {}
            # People mostly go on with what they brought or made last.
            model = _of(versions, given.get("model_version"), newest=self.models_first(versions))
            dataset = _of(datasets, given.get("dataset_version"), newest=datasets)
            kwargs["initial"] = self._start(model, dataset, given, datasets=datasets) | given
        super().__init__(*args, user=user, **kwargs)
        self.row_choice("model_version").queryset = versions
        self.row_choice("dataset_version").queryset = datasets

    @staticmethod
    def models_first(versions: QuerySet[ModelVersion]) -> QuerySet[ModelVersion]:
        """Those of which the newest is chosen before anybody chooses."""
        return versions

    def _start(
        self,
        model: ModelVersion | None,
        dataset: DatasetVersion | None,
        given: Mapping[str, Any],
        *,
        datasets: QuerySet[DatasetVersion],
    ) -> dict[str, Any]:
        """What the form begins with: these, and the team of what was chosen before it was opened."""
        start: dict[str, Any] = {}
        if model is not None:
            start["model_version"] = model.uid
            if "model_version" in given and model.line.team is not None:
                start["team"] = model.line.team.uid
        if dataset is not None:
            start["dataset_version"] = dataset.uid
            if "dataset_version" in given:
                start["team"] = dataset.dataset.team.uid
        return start

    @property
    def has_models(self) -> bool:
        return self._has("model_version")

    @property
    def has_datasets(self) -> bool:
        return self._has("dataset_version")

    def _has(self, name: str) -> bool:
        """Whether there is anything to choose from; what is newest is chosen already if there is."""
        rows = self.row_choice(name).queryset
        return bool(self.initial.get(name)) or (rows is not None and rows.exists())


def _of(rows: QuerySet[Row], uid: str | None, *, newest: QuerySet[Row]) -> Row | None:
    """The row of that uid, or where none is given the newest of those; None where there is none."""
    if uid is not None:
        return rows.filter(uid=uid).first()
    return newest.order_by("-pk").first()


def number(label: Any, *, whole: bool = False, help_text: Any = "") -> forms.Field:
    """A number whose bounds the engine knows. ``step=any`` keeps browsers from refusing 1e-5."""
    if whole:
        return forms.IntegerField(label=label, required=False, help_text=help_text)
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(label=label, required=False, help_text=help_text, widget=widget)


class EvaluateForm(ModelJobForm):
    kind = JobKind.EVALUATE
    spec_fields: ClassVar[Mapping[str, str]] = {
        "metrics": "metrics",
        "split": "split",
        "limit": "limit",
        "max_new_tokens": "max_new_tokens",
        "batch_size": "batch_size",
        "seed": "seed",
    }
    more = (
        "max_new_tokens",
        "batch_size",
        "seed",
        "name",
        "chip",
        "cards",
        "priority",
        "secret_variables",
        *RETRY_NAMES,
    )
    field_order = (
        "team",
        "model_version",
        "dataset_version",
        "metrics",
        "split",
        "limit",
        "with_base",
    )

    metrics = forms.MultipleChoiceField(
        label=_("Metrics"),
        choices=[
            ("exact_match", _("exact match: share of answers that are right as a whole")),
            ("label_accuracy", _("label accuracy: share of labels that are right")),
            ("perplexity", _("perplexity: how surprised it is by the right answers")),
        ],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    split = forms.ChoiceField(
        label=_("Split"), choices=[(split.value, split.value) for split in Split], required=False
    )
    limit = number(_("Most rows"), whole=True, help_text=_("Empty: all of them."))
    max_new_tokens = number(_("Longest answer in tokens"), whole=True)
    batch_size = number(_("Batch size"), whole=True)
    seed = number(_("Seed"), whole=True)

    with_base = forms.BooleanField(
        label=_("Evaluate its base too"),
        required=False,
        help_text=_("A second job on the same rows, so that the two can be compared."),
    )

    def _start(
        self,
        model: ModelVersion | None,
        dataset: DatasetVersion | None,
        given: Mapping[str, Any],
        *,
        datasets: QuerySet[DatasetVersion],
    ) -> dict[str, Any]:
        """The rows that the model was made with, those it has not learned from, and what fits them."""
        learned = models.learned_from(model) if model and "dataset_version" not in given else None
        if learned is not None:
            dataset = datasets.filter(pk=learned.pk).first() or dataset
        start = super()._start(model, dataset, given, datasets=datasets)
        if dataset is None:
            return start
        told = dataset.statistics
        answers = [row["messages"][-1]["content"] for row in dataset.preview if row["messages"]]
        metrics = fitting_metrics(told["schema"], answers, median=told["answer_characters"]["p50"])
        split = split_to_answer(told["rows_by_split"])
        return start | {"split": split.value, "metrics": list(metrics)}

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        model = values.get("model_version")
        if values.get("with_base") and model is not None:
            if model.base is None:
                message = gettext("%(model)s was not made from another model") % {"model": model}
                self.add_error("with_base", message)
            elif model.base.state != ModelState.READY:
                message = gettext("%(model)s has no files any more") % {"model": model.base}
                self.add_error("with_base", message)
        return values

    def requests(self, *, code: Artifact | None = None) -> list[JobRequest]:
        wanted = super().requests(code=code)
        if self.cleaned_data["with_base"]:
            base = self.cleaned_data["model_version"].base
            wanted.append(replace(wanted[0], model_version=base, name=f"evaluate {base}"[:120]))
        return wanted

    def default_name(self) -> str:
        return f"evaluate {self.cleaned_data['model_version']}"[:120]


class ScriptForm(JobForm):
    kind = JobKind.SCRIPT
    spec_fields: ClassVar[Mapping[str, str]] = {
        "argv": "argv",
        "environment": "environment",
        "maximum_run_time_seconds": "maximum_run_time_seconds",
    }
    more = ("name", "chip", "priority", *RETRY_NAMES)
    field_order = (
        "team",
        "argv",
        "code",
        "environment",
        "secret_variables",
        "maximum_run_time_seconds",
        "cards",
    )

    #: The code of the job that is cloned; a file that is chosen takes its place.
    earlier_code = forms.ModelChoiceField(
        queryset=Artifact.objects.none(),
        to_field_name="uid",
        required=False,
        widget=forms.HiddenInput,
    )

    argv = forms.CharField(
        label=_("Command, one argument a line"),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text=_("No shell reads it. What it writes into outputs/ is kept."),
    )
    code = forms.FileField(
        label=_("Code"),
        required=False,
        help_text=_("A .tar.gz, .tar or .zip that is unpacked where the command runs."),
    )
    environment = forms.CharField(
        label=_("Environment, one NAME=value a line"),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        required=False,
    )
    maximum_run_time_seconds = number(_("Longest run in seconds"), whole=True)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.row_choice("earlier_code").queryset = models.code_visible(user)
        if self["earlier_code"].value():
            self.fields["code"].help_text = _(
                "The code of the job that you clone is used, unless you choose another archive."
            )

    @classmethod
    def initial_of(cls, job: Job) -> dict[str, Any]:
        values = super().initial_of(job)
        variables = values["environment"] or {}
        return {
            **values,
            "argv": "\n".join(values["argv"] or ()),
            "environment": "\n".join(f"{name}={value}" for name, value in variables.items()),
            "earlier_code": job.code.uid if job.code else None,
        }

    def request(self, *, code: Artifact | None = None) -> JobRequest:
        return super().request(code=code or self.cleaned_data.get("earlier_code"))

    def clean_argv(self) -> list[str]:
        text: str = self.cleaned_data["argv"]
        return [line for line in text.splitlines() if line]

    def clean_environment(self) -> dict[str, str]:
        text: str = self.cleaned_data["environment"]
        variables = {}
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            name, separator, value = line.partition("=")
            if not separator:
                raise ValidationError(
                    gettext("Line %(number)d is no NAME=value: %(line)s")
                    % {"number": number, "line": line[:80]}
                )
            variables[name.strip()] = value
        return variables

    def default_name(self) -> str:
        return " ".join(self.cleaned_data["argv"])[:120]
