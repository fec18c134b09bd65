"""Forms that submit workloads: the queue of a team, and one form for each kind of job.

An empty field is left out of the spec, so that the engine's recommendation applies; the form shows it as the
placeholder. Values are validated by the engine (``job_check``).
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

from apps.accounts.models import Team, User
from apps.accounts.web.forms import TeamForm
from apps.jobs.models import Job
from apps.jobs.services import DEFAULT_ENGINE, JobRequest
from apps.jobs.web.chip_choices import FleetChipChoices
from apps.jobs.web.form_fields import (
    PriorityField,
    SecretVariablesField,
    SelectWithDisabledChoices,
    SpecFormField,
    apply_field_limits,
    flatten_fields,
    form_field_of_spec_field,
    set_choices,
    show_default,
)
from apps.models import selectors as models
from apps.models.models import Artifact, DatasetVersion, ModelVersion
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from controlplane.domain.common.spec_fields import set_value_at_path, value_at_path
from controlplane.domain.jobs import retries
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.quotas.claims import GangShape
from controlplane.domain.registry.versions import ModelState
from controlplane.domain.specs.evaluation import default_evaluation_split, recommended_metrics
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine, EngineTask, ModelFacts
from controlplane.web.forms import row_choice_field


class QueuedWorkloadForm(TeamForm):
    """A form of a team whose workload is queued; ``queue`` is one of its cleaned values."""

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("team") is not None:
            values["queue"] = self.selected_queue(values["team"])
            if values["queue"] is None:
                raise ValidationError(
                    gettext("Team %(team)s has no open queue. Ask an administrator to open one.")
                    % {"team": values["team"]}
                )
        return values

    def selected_queue(self, team: Team) -> Queue | None:
        """The queue of the workload; None if the team may use none."""
        return quotas.default_queue_of_team(team)


VersionRow = TypeVar("VersionRow", ModelVersion, DatasetVersion)

#: Form fields of the retry policy, collapsed in every form.
RETRY_FIELDS: tuple[SpecFormField, ...] = tuple(flatten_fields(retries.FIELDS, f"{retries.FIELD}."))
RETRY_NAMES = tuple(each.name for each in RETRY_FIELDS)


def spec_form_fields(kind: JobKind, *, engine: str) -> tuple[SpecFormField, ...]:
    """Fields of the engine's spec for that kind of job."""
    fields = adapter_registry.engine_by_name(engine).fields(EngineTask(kind))
    return tuple(flatten_fields(fields))


def engines_for_task(task: EngineTask) -> tuple[Engine, ...]:
    """Installed engines that support the task, the default engine first."""
    engines = map(adapter_registry.engine_by_name, adapter_registry.engine_names())
    found = (engine for engine in engines if task in engine.tasks)
    return tuple(sorted(found, key=lambda engine: (engine.name != DEFAULT_ENGINE, engine.name)))


class JobForm(QueuedWorkloadForm):
    """Base form of all kinds of jobs; fields of the spec come from the table of the engine."""

    kind: ClassVar[JobKind]
    finding_fields: ClassVar[Mapping[str, str]] = {"chips": "chip"}

    name = forms.CharField(label=_("Job name"), max_length=120, required=False)
    chip = forms.ChoiceField(label=_("Chip"), initial="any", widget=SelectWithDisabledChoices)
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
        self.order_fields(self.field_order)
        self._add_retry_fields()
        self._show_defaults(user)

    def chosen(self, name: str) -> str:
        """The current value of the field, valid or not; empty if there is none."""
        return str(self.data.get(name) or self.initial.get(name) or "")

    def preferred_chip(self) -> str:
        """The chip that the selection resolves to now; empty if there is none."""
        return self.fleet_chips.preferred(
            self.chosen("chip") or "any",
            engine=adapter_registry.engine_by_name(self.engine_name()),
            task=EngineTask(self.kind),
        )

    @cached_property
    def fleet_chips(self) -> FleetChipChoices:
        return FleetChipChoices.load()

    @cached_property
    def engine_fields(self) -> tuple[SpecFormField, ...]:
        """Fields of the spec; those that the form does not declare itself are added to it."""
        return spec_form_fields(self.kind, engine=self.engine_name())

    def _add_fields(self, user: User) -> None:
        for each in self.engine_fields:
            if each.name not in self.fields:
                self.fields[each.name] = form_field_of_spec_field(each.field)
                self.dress(self.fields[each.name])

    def _add_retry_fields(self) -> None:
        for each in RETRY_FIELDS:
            field = form_field_of_spec_field(each.field)
            self.dress(field)
            show_default(field, each.field.default)
            self.fields[each.name] = field

    def _show_defaults(self, user: User) -> None:
        """Show the defaults of the engine for the selected model."""
        engine, task = adapter_registry.engine_by_name(self.engine_name()), EngineTask(self.kind)
        recommended = engine.recommended_values(task, model=self._model_facts(user))
        defaults = engine.normalise(task, {**recommended, **self._selected_values()})
        for each in self.engine_fields:
            field, default = self.fields[each.name], value_at_path(defaults, each.path)
            show_default(field, default)
            if each.has_meaning_if_empty:
                self.initial.setdefault(each.name, default)
            # A null of a cloned job means the default as well.
            if isinstance(field, forms.ChoiceField) and self.initial.get(each.name) is None:
                self.initial.pop(each.name, None)

    def engine_name(self) -> str:
        return DEFAULT_ENGINE

    def _selected_values(self) -> Mapping[str, Any]:
        """Selected values that change the defaults of other fields."""
        return {}

    def _model_facts(self, user: User) -> ModelFacts | None:
        """Facts of the selected model, queried once."""
        uid = self.chosen("model_version")
        if uid not in self._facts_known:
            version = models.model_versions_usable(user).filter(uid=uid).first() if uid else None
            self._facts_known[uid] = models.engine_model_facts(version) if version else None
        return self._facts_known[uid]

    def spec(self) -> dict[str, Any]:
        """The filled fields as the engine's spec."""
        spec: dict[str, Any] = {}
        for each in self.engine_fields:
            value = self.cleaned_data.get(each.name)
            if value not in (None, "", []):
                set_value_at_path(spec, each.path, value)
            elif each.has_meaning_if_empty and each.name in self.data:
                set_value_at_path(spec, each.path, None)
        return spec

    def retry_policy(self) -> dict[str, Any]:
        """The filled fields of the retry policy."""
        is_rendered = RETRY_NAMES[0] in self.data
        values = {each.field.name: self.cleaned_data.get(each.name) for each in RETRY_FIELDS}
        # An empty selection of causes is refused, not replaced by the default.
        return {
            name: each
            for name, each in values.items()
            if each or each == 0 or (is_rendered and each == [])
        }

    def default_name(self) -> str:
        raise NotImplementedError

    @classmethod
    def initial_values_of_job(cls, job: Job) -> dict[str, Any]:
        """Initial values of a form that clones the job."""
        values: dict[str, Any] = {
            "team": job.team.uid,
            "name": job.name,
            "chip": (job.asked_chips or job.chips)[0],
            "cards": GangShape.from_json(job.shape).cards,
            "model_version": job.model_version.uid if job.model_version else None,
            "dataset_version": job.dataset_version.uid if job.dataset_version else None,
            "output_name": job.output_name,
            "priority": job.priority,
            # Names only: the values have to be entered again.
            "secret_variables": [each.name for each in job.secret_variables.all()],
        }
        installed = [engine.name for engine in engines_for_task(EngineTask(cls.kind))]
        engine = job.engine if job.engine in installed else installed[0]
        for each in spec_form_fields(cls.kind, engine=engine):
            values[each.name] = value_at_path(job.spec, each.path)
        policy = job.resolved_retry_policy.as_json()
        values |= {each.name: policy[each.field.name] for each in RETRY_FIELDS}
        return values

    def request(self, *, code: Artifact | None = None) -> JobRequest:
        """The job request of the valid form."""
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
        """All job requests of the valid form, the main one first."""
        return [self.request(code=code)]


class ModelJobForm(JobForm):
    """A form of a job with a model version and a dataset version."""

    model_version = row_choice_field(ModelVersion, _("Model"))
    dataset_version = row_choice_field(DatasetVersion, _("Dataset"))

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        versions, datasets = (
            models.model_versions_usable(user),
            models.dataset_versions_usable(user),
        )
        if not args:
            initial = kwargs.get("initial") or {}
            # Users mostly continue with what they registered or created last.
            model = _initially_selected_version(
                versions, initial.get("model_version"), newest=self.default_models(versions)
            )
            dataset = _initially_selected_version(
                datasets, initial.get("dataset_version"), newest=datasets
            )
            kwargs["initial"] = (
                self._initial_values(model, dataset, initial, datasets=datasets) | initial
            )
        super().__init__(*args, user=user, **kwargs)
        self.model_choice_field("model_version").queryset = versions
        self.model_choice_field("dataset_version").queryset = datasets

    @staticmethod
    def default_models(versions: QuerySet[ModelVersion]) -> QuerySet[ModelVersion]:
        """Versions of which the newest is selected by default."""
        return versions

    def _initial_values(
        self,
        model: ModelVersion | None,
        dataset: DatasetVersion | None,
        initial: Mapping[str, Any],
        *,
        datasets: QuerySet[DatasetVersion],
    ) -> dict[str, Any]:
        """Initial values: model, dataset, and the team of the one given in the URL."""
        start: dict[str, Any] = {}
        if model is not None:
            start["model_version"] = model.uid
            if "model_version" in initial and model.line.team is not None:
                start["team"] = model.line.team.uid
        if dataset is not None:
            start["dataset_version"] = dataset.uid
            if "dataset_version" in initial:
                start["team"] = dataset.dataset.team.uid
        return start

    @property
    def has_models(self) -> bool:
        return self._has_choices("model_version")

    @property
    def has_datasets(self) -> bool:
        return self._has_choices("dataset_version")

    def _has_choices(self, name: str) -> bool:
        """Whether there is anything to select; the newest is selected by default."""
        rows = self.model_choice_field(name).queryset
        return bool(self.initial.get(name)) or (rows is not None and rows.exists())


class GuidedJobForm(ModelJobForm):
    """A form in steps, of a job whose output is a version of a model."""

    #: Fields of each step, in order.
    steps: ClassVar[Mapping[str, tuple[str, ...]]]

    finding_fields: ClassVar[Mapping[str, str]] = {"chips": "chip", "model": "model_version"}

    engine = forms.ChoiceField(label=_("Engine"), widget=SelectWithDisabledChoices, required=False)
    output_name = forms.SlugField(
        label=_("New model name"),
        max_length=80,
        help_text=_("Letters, digits, - and _. An existing name adds a version to that model."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        if not self.is_bound and not self.initial.get("output_name"):
            self.initial["output_name"] = self._suggested_output_name(user)

    def _suggested_output_name(self, user: User) -> str:
        raise NotImplementedError

    def engine_name(self) -> str:
        """The selected engine, or the first that supports the task."""
        selected = self.chosen("engine")
        known = [engine.name for engine in engines_for_task(EngineTask(self.kind))]
        return selected if selected in known else known[0]

    def _add_fields(self, user: User) -> None:
        """Add the fields, and disable what the selected engine, chip or model does not support."""
        super()._add_fields(user)
        engine, task = adapter_registry.engine_by_name(self.engine_name()), EngineTask(self.kind)
        chip = adapter_registry.chip_by_name(self.preferred_chip())
        limits = engine.limits(task, chip=chip, model=self._model_facts(user))
        for each in self.engine_fields:
            apply_field_limits(self.fields[each.name], each, limits)
        chips = self.fleet_chips.choices(chosen=self.chosen("chip"))
        reasons = self.fleet_chips.reasons(dict(chips), engine=engine, task=task)
        set_choices(self.choice("chip"), chips, reasons=reasons)
        engines = engines_for_task(task)
        titles = [(each.name, each.profile().title) for each in engines]
        against = (
            {each.name: each.unsupported_reason(task, chip) for each in engines} if chip else {}
        )
        set_choices(self.choice("engine"), titles, reasons=against)
        self.fields["engine"].initial = engine.name

    @classmethod
    def initial_values_of_job(cls, job: Job) -> dict[str, Any]:
        return {**super().initial_values_of_job(job), "engine": job.engine}

    @property
    def more_fields(self) -> list[forms.BoundField]:
        in_steps = {name for names in self.steps.values() for name in names}
        fields = (each.name for each in self.engine_fields)
        names = (*fields, "name", "priority", "secret_variables", *RETRY_NAMES)
        return [self[name] for name in names if name not in in_steps]

    def step_fields(self, step: str) -> list[forms.BoundField]:
        return [self[name] for name in self.steps[step] if not self[name].is_hidden]

    @property
    def model_fields(self) -> list[forms.BoundField]:
        return self.step_fields("model")

    @property
    def data_fields(self) -> list[forms.BoundField]:
        return self.step_fields("data")

    @property
    def method_fields(self) -> list[forms.BoundField]:
        return self.step_fields("method")


def _initially_selected_version(
    rows: QuerySet[VersionRow], uid: str | None, *, newest: QuerySet[VersionRow]
) -> VersionRow | None:
    """The row of that uid, or without uid the newest; None if there is none."""
    if uid is not None:
        return rows.filter(uid=uid).first()
    return newest.order_by("-pk").first()


class EvaluateForm(ModelJobForm):
    kind = JobKind.EVALUATE
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

    with_base = forms.BooleanField(
        label=_("Evaluate the base model too"),
        required=False,
        help_text=_("Submits a second job on the same examples for comparison."),
    )

    def _initial_values(
        self,
        model: ModelVersion | None,
        dataset: DatasetVersion | None,
        initial: Mapping[str, Any],
        *,
        datasets: QuerySet[DatasetVersion],
    ) -> dict[str, Any]:
        """Select the training dataset of the model, a split it was not trained on, and suitable metrics."""
        learned = (
            models.training_dataset_version(model)
            if model and "dataset_version" not in initial
            else None
        )
        if learned is not None:
            dataset = datasets.filter(pk=learned.pk).first() or dataset
        start = super()._initial_values(model, dataset, initial, datasets=datasets)
        if dataset is None:
            return start
        statistics = dataset.statistics
        answers = [row["messages"][-1]["content"] for row in dataset.preview if row["messages"]]
        metrics = recommended_metrics(
            statistics["schema"], answers, median=statistics["answer_characters"]["p50"]
        )
        split = default_evaluation_split(statistics["rows_by_split"])
        return start | {"split": split.value, "metrics": list(metrics)}

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        model = values.get("model_version")
        if values.get("with_base") and model is not None:
            if model.base is None:
                message = gettext("%(model)s has no base model") % {"model": model}
                self.add_error("with_base", message)
            elif model.base.state != ModelState.READY:
                message = gettext("The files of %(model)s were deleted") % {"model": model.base}
                self.add_error("with_base", message)
        return values

    def requests(self, *, code: Artifact | None = None) -> list[JobRequest]:
        requests = super().requests(code=code)
        if self.cleaned_data["with_base"]:
            base = self.cleaned_data["model_version"].base
            requests.append(replace(requests[0], model_version=base, name=f"evaluate {base}"[:120]))
        return requests

    def default_name(self) -> str:
        return f"evaluate {self.cleaned_data['model_version']}"[:120]


class ScriptForm(JobForm):
    kind = JobKind.SCRIPT
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

    #: The code of the cloned job; an uploaded file replaces it.
    earlier_code = forms.ModelChoiceField(
        queryset=Artifact.objects.none(),
        to_field_name="uid",
        required=False,
        widget=forms.HiddenInput,
    )

    argv = forms.CharField(
        label=_("Command, one argument per line"),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text=_(
            "Not run in a shell. Files written to the folder that NINEFOLD_OUTPUTS names are stored."
        ),
    )
    code = forms.FileField(
        label=_("Code"),
        required=False,
        help_text=_(
            "A .tar.gz, .tar or .zip archive; extracted into the working directory of the command."
        ),
    )
    environment = forms.CharField(
        label=_("Environment variables, one NAME=value per line"),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        required=False,
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.model_choice_field("earlier_code").queryset = models.code_archives_visible(user)
        if self["earlier_code"].value():
            self.fields["code"].help_text = _(
                "The code of the cloned job is used unless you select another archive."
            )

    @classmethod
    def initial_values_of_job(cls, job: Job) -> dict[str, Any]:
        values = super().initial_values_of_job(job)
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
                    gettext("Line %(number)d must have the form NAME=value: %(line)s")
                    % {"number": number, "line": line[:80]}
                )
            variables[name.strip()] = value
        return variables

    def default_name(self) -> str:
        return " ".join(self.cleaned_data["argv"])[:120]
