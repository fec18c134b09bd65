"""The guided form of a fine-tune: base model, dataset, training method, resources, and the resource estimate.

All fields come from the engine's field table. A few are in the steps; the others are collapsed in the table's
groups. Values that the engine, the chip or the model does not support are disabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Team, User
from apps.jobs.models import Job
from apps.jobs.selectors.finetune_estimates import FinetuneEstimate, FinetunePlan, finetune_estimate
from apps.jobs.services import ResolvedRequest
from apps.jobs.web.form_fields import (
    SelectWithDisabledChoices,
    flatten_fields,
    set_choices,
)
from apps.jobs.web.forms import RETRY_NAMES, GuidedJobForm
from apps.models import selectors as models
from apps.models.models import ModelVersion
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from controlplane.domain.common.spec_fields import FieldKind
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.ports import adapter_registry
from controlplane.ports.engines import EngineTask

#: Groups that apply to some methods or objectives only; for others they are left out of the spec.
_USED_BY: Mapping[str, tuple[str, frozenset[str]]] = {
    "lora": ("method", frozenset({"lora", "qlora"})),
    "qlora": ("method", frozenset({"qlora"})),
    "dpo": ("objective", frozenset({"dpo"})),
    "grpo": ("objective", frozenset({"grpo"})),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGroup:
    """A labelled group of fields."""

    label: str
    help: str
    fields: tuple[forms.BoundField, ...]


class FinetuneForm(GuidedJobForm):
    kind = JobKind.FINETUNE
    finding_fields: ClassVar[Mapping[str, str]] = {
        **GuidedJobForm.finding_fields,
        "parallel": "parallel_data",
    }
    field_order = ("team", "model_version", "dataset_version", "output_name")
    steps: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": ("team", "model_version", "output_name"),
        "data": ("dataset_version", "objective", "epochs"),
        "method": ("method", "learning_rate"),
        "resources": ("engine", "chip", "cards", "queue", "priority"),
    }

    queue = forms.ChoiceField(label=_("Queue"), required=False, widget=SelectWithDisabledChoices)

    @staticmethod
    def default_models(versions: QuerySet[ModelVersion]) -> QuerySet[ModelVersion]:
        """Versions without quantized weights, which cannot be trained."""
        return versions.filter(scheme="")

    def _add_fields(self, user: User) -> None:
        super()._add_fields(user)
        names = dict.fromkeys(queue.name for queue in quotas.queues_visible(user))
        queues = [("", _("default queue of the team")), *((name, name) for name in names)]
        set_choices(self.choice("queue"), queues, reasons={})

    def _suggested_output_name(self, user: User) -> str:
        """Name of the output model, suggested from the dataset in the URL."""
        uid = self.initial.get("dataset_version")
        rows = models.dataset_versions_usable(user).filter(uid=uid)
        name = rows.values_list("dataset__name", flat=True).first() if uid else None
        return f"{name}-model"[:80] if name else ""

    @property
    def resource_fields(self) -> list[forms.BoundField]:
        return self.step_fields("resources")

    @property
    def more_groups(self) -> list[FieldGroup]:
        """Collapsed fields: those without a group first, then the table's groups and the retry policy."""
        in_steps = {name for names in self.steps.values() for name in names}
        table = adapter_registry.engine_by_name(self.engine_name()).fields(EngineTask.FINETUNE)
        alone = [
            self[field.name]
            for field in table
            if field.kind is not FieldKind.GROUP and field.name not in in_steps
        ]
        groups = [
            FieldGroup(label="", help="", fields=(*alone, self["name"], self["secret_variables"]))
        ]
        for field in table:
            if field.kind is FieldKind.GROUP:
                inside = tuple(
                    self[each.name] for each in flatten_fields(field.fields, f"{field.name}.")
                )
                groups.append(
                    FieldGroup(
                        label=gettext(field.label),
                        help=gettext(field.help),
                        fields=inside,
                    )
                )
        retry = FieldGroup(
            label=gettext("Retries"),
            help=gettext(
                "Number of retries after a failure. Each retry continues from the latest "
                "checkpoint."
            ),
            fields=tuple(self[name] for name in RETRY_NAMES),
        )
        return [*groups, retry]

    def _selected_values(self) -> Mapping[str, Any]:
        chosen = {name: self.chosen(name) for name in ("objective", "method")}
        known = {each.path: each.field.choices for each in self.engine_fields}
        return {name: value for name, value in chosen.items() if value in known[name]}

    def selected_queue(self, team: Team) -> Queue | None:
        """The selected queue, if the team may use it."""
        name = self.cleaned_data.get("queue")
        if not name:
            return super().selected_queue(team)
        queues = {queue.name: queue for queue in quotas.queues_for_team(team)}
        if name not in queues:
            message = _("Team %(team)s cannot use queue %(queue)s. Available queues: %(right)s.")
            self.add_error(
                "queue", message % {"team": team, "queue": name, "right": ", ".join(queues)}
            )
            return super().selected_queue(team)
        return queues[name]

    def spec(self) -> dict[str, Any]:
        spec = super().spec()
        for group, (chooser, values) in _USED_BY.items():
            if spec.get(chooser) not in values:
                spec.pop(group, None)
        return spec

    @classmethod
    def initial_values_of_job(cls, job: Job) -> dict[str, Any]:
        return {**super().initial_values_of_job(job), "queue": job.queue.name}

    def default_name(self) -> str:
        return f"fine-tune {self.cleaned_data['output_name']}"


def estimate_of_finetune_form(
    form: FinetuneForm, resolved: ResolvedRequest, *, user: User
) -> FinetuneEstimate:
    """The resource estimate of a valid form."""
    values = form.cleaned_data
    plan = FinetunePlan(
        version=values["model_version"],
        dataset=values["dataset_version"],
        spec=resolved.spec or {},
        queue=values["queue"],
        chip=resolved.chips[0].name,
        cards=values["cards"],
        engine=form.engine_name(),
    )
    return finetune_estimate(plan, user=user)
