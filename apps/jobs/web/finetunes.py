"""The guided fine-tune: which model, which rows, which way, on what; and what that will take.

Everything that can be set comes from the engine's table of fields. A few are asked first; the rest is
folded away in the table's own groups, and what the engine, the chip or the model cannot do is greyed out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Team, User
from apps.jobs.models import Job
from apps.jobs.selectors.estimates import Estimate, Plan, estimate_of
from apps.jobs.services import PREFERRED, Settled
from apps.jobs.web.forms import RETRY_NAMES, ModelJobForm
from apps.jobs.web.limited_choices import LimitedSelect, offer
from apps.jobs.web.spec_fields import PlacedField, flat, form_field, limit_field
from apps.models import selectors as models
from apps.models.models import ModelVersion
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from controlplane.domain.fields import Kind, at_path
from controlplane.domain.jobs import JobKind
from controlplane.ports import registry
from controlplane.ports.engines import Engine, Task
from controlplane.web.sentences import said

#: Groups that count for a method or an objective only; elsewhere they are left out of the spec.
_USED_BY: Mapping[str, tuple[str, frozenset[str]]] = {
    "lora": ("method", frozenset({"lora", "qlora"})),
    "qlora": ("method", frozenset({"qlora"})),
    "dpo": ("objective", frozenset({"dpo"})),
    "grpo": ("objective", frozenset({"grpo"})),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGroup:
    """Fields that belong together."""

    label: str
    help: str
    fields: tuple[forms.BoundField, ...]


def trainers() -> tuple[Engine, ...]:
    """The installed engines that train, this product's own first."""
    engines = (registry.engine(name) for name in registry.engine_names())
    found = [engine for engine in engines if Task.FINETUNE in engine.tasks]
    return tuple(sorted(found, key=lambda engine: (engine.name != PREFERRED, engine.name)))


class FinetuneForm(ModelJobForm):
    kind = JobKind.FINETUNE
    finding_fields: ClassVar[Mapping[str, str]] = {
        "chips": "chip",
        "model": "model_version",
        "parallel": "parallel_data",
    }
    field_order = ("team", "model_version", "dataset_version", "output_name")
    #: The fields of each step, in the order in which they are asked.
    steps: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": ("team", "model_version", "output_name"),
        "data": ("dataset_version", "objective", "epochs"),
        "method": ("method", "learning_rate"),
        "place": ("engine", "chip", "cards", "queue", "priority"),
    }

    output_name = forms.SlugField(
        label=_("Name of the new model"),
        max_length=80,
        help_text=_("Letters, digits, - and _. A known name adds a version to that model."),
    )
    engine = forms.ChoiceField(label=_("Engine"), widget=LimitedSelect, required=False)
    queue = forms.ChoiceField(label=_("Queue"), required=False, widget=LimitedSelect)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        if not self.is_bound and not self.initial.get("output_name"):
            self.initial["output_name"] = self._name_at_hand(user)

    @staticmethod
    def models_first(versions: QuerySet[ModelVersion]) -> QuerySet[ModelVersion]:
        """Quantized weights cannot learn."""
        return versions.filter(scheme="")

    @cached_property
    def placed(self) -> tuple[PlacedField, ...]:
        """What the chosen engine can be asked for."""
        return tuple(flat(registry.engine(self.engine_name()).fields(Task.FINETUNE)))

    def paths(self) -> Mapping[str, str]:
        return {each.name: each.path for each in self.placed}

    def engine_name(self) -> str:
        """The chosen one, or this product's own."""
        asked = self.chosen("engine")
        known = [engine.name for engine in trainers()]
        return asked if asked in known else known[0]

    def _add_fields(self, user: User) -> None:
        for each in self.placed:
            field = form_field(each.field)
            self.dress(field)
            self.fields[each.name] = field
        names = dict.fromkeys(queue.name for queue in quotas.queues_visible(user))
        queues = [("", _("the team's own")), *((name, name) for name in names)]
        offer(self.choice("queue"), queues, reasons={})
        self._grey_out(user)

    def _grey_out(self, user: User) -> None:
        """What the chosen engine, chip and model cannot do, with the reason."""
        engine, task = registry.engine(self.engine_name()), Task.FINETUNE
        chip = registry.chip_called(self.preferred_chip())
        limits = engine.limits(task, chip=chip, model=self._facts(user))
        for each in self.placed:
            limit_field(self.fields[each.name], each, limits)
        chips = self.fleet_chips.choices(chosen=self.chosen("chip"))
        reasons = self.fleet_chips.reasons(dict(chips), engine=engine, task=task)
        offer(self.choice("chip"), chips, reasons=reasons)
        engines = trainers()
        titles = [(each.name, each.profile().title) for each in engines]
        against = {each.name: each.runs_on(task, chip) for each in engines} if chip else {}
        offer(self.choice("engine"), titles, reasons=against)
        self.fields["engine"].initial = engine.name

    def _name_at_hand(self, user: User) -> str:
        """Of a new model that learns from rows that are chosen already; they may change it."""
        uid = self.initial.get("dataset_version")
        rows = models.dataset_versions_usable(user).filter(uid=uid)
        name = rows.values_list("dataset__name", flat=True).first() if uid else None
        return f"{name}-model"[:80] if name else ""

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

    @property
    def place_fields(self) -> list[forms.BoundField]:
        return self.step_fields("place")

    @property
    def more_fields(self) -> list[forms.BoundField]:
        asked = {name for names in self.steps.values() for name in names}
        return [self[each.name] for each in self.placed if each.name not in asked] + [
            self["name"],
            self["secret_variables"],
            *(self[name] for name in RETRY_NAMES),
        ]

    @property
    def more_groups(self) -> list[FieldGroup]:
        """What is folded away: what stands alone first, then the table's groups."""
        asked = {name for names in self.steps.values() for name in names}
        table = registry.engine(self.engine_name()).fields(Task.FINETUNE)
        alone = [
            self[field.name]
            for field in table
            if field.kind is not Kind.GROUP and field.name not in asked
        ]
        groups = [
            FieldGroup(label="", help="", fields=(*alone, self["name"], self["secret_variables"]))
        ]
        for field in table:
            if field.kind is Kind.GROUP:
                inside = tuple(self[each.name] for each in flat(field.fields, f"{field.name}."))
                groups.append(
                    FieldGroup(label=said(field.label), help=said(field.help), fields=inside)
                )
        retry = FieldGroup(
            label=gettext("Retries"),
            help=gettext("Each retry continues from the newest checkpoint."),
            fields=tuple(self[name] for name in RETRY_NAMES),
        )
        return [*groups, retry]

    def _chosen(self) -> Mapping[str, Any]:
        chosen = {name: self.chosen(name) for name in ("objective", "method")}
        known = {each.path: each.field.choices for each in self.placed}
        return {name: value for name, value in chosen.items() if value in known[name]}

    def queue_of(self, team: Team) -> Queue | None:
        """The one that was chosen, if it is open to the team."""
        name = self.cleaned_data.get("queue")
        if not name:
            return super().queue_of(team)
        queues = {queue.name: queue for queue in quotas.queues_for(team)}
        if name not in queues:
            message = _("Team %(team)s may not use the queue %(queue)s; it may use %(right)s.")
            self.add_error(
                "queue", message % {"team": team, "queue": name, "right": ", ".join(queues)}
            )
            return super().queue_of(team)
        return queues[name]

    def spec(self) -> dict[str, Any]:
        spec = super().spec()
        for group, (chooser, values) in _USED_BY.items():
            if spec.get(chooser) not in values:
                spec.pop(group, None)
        return spec

    @classmethod
    def initial_of(cls, job: Job) -> dict[str, Any]:
        values = {
            **super().initial_of(job),
            "engine": job.engine,
            "queue": job.queue.name,
        }
        for each in flat(registry.engine(job.engine).fields(Task.FINETUNE)):
            values[each.name] = at_path(job.spec, each.path)
        return values

    def default_name(self) -> str:
        return f"fine-tune {self.cleaned_data['output_name']}"


def estimate_for(form: FinetuneForm, settled: Settled, *, user: User) -> Estimate:
    """Of a form whose fields are all right, with what they make."""
    values = form.cleaned_data
    plan = Plan(
        version=values["model_version"],
        dataset=values["dataset_version"],
        spec=settled.spec or {},
        queue=values["queue"],
        chip=settled.chips[0].name,
        cards=values["cards"],
        engine=form.engine_name(),
    )
    return estimate_of(plan, user=user)
