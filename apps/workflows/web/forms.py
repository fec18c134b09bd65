"""One form for all steps of a pipeline: what they share, then a section for each.

What is allowed in a field only the engines say (``pipeline_check``), so nothing is required here but what has
no likely value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from apps.accounts.models import User
from apps.fleet import selectors as fleet
from apps.jobs.web.forms import QueuedForm
from apps.models import selectors as models
from apps.models.models import DatasetVersion, ModelVersion
from apps.workflows.models import Pipeline, Step
from apps.workflows.services import PipelineRequest, StepRequest
from apps.workflows.web.sections import PLACES, SectionForm
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.pipelines import MAKING
from controlplane.web.forms import PlainForm

#: What runs where the fleet has told nothing yet.
_FALLBACK_CHIP = "cpu"


class HeadForm(QueuedForm):
    """What all steps share."""

    finding_fields: ClassVar[Mapping[str, str]] = {"chips": "chip"}
    field_order = ("team", "model_version", "dataset_version", "name", "chip", "cards")

    name = forms.CharField(
        label=_("Name of the pipeline"),
        max_length=120,
        required=False,
        help_text=_("Empty: named after the dataset."),
    )
    model_version = forms.ModelChoiceField(
        label=pgettext_lazy("pipeline", "Begin with"),
        queryset=ModelVersion.objects.none(),
        to_field_name="uid",
        empty_label=_("choose one"),
    )
    dataset_version = forms.ModelChoiceField(
        label=_("Dataset"),
        queryset=DatasetVersion.objects.none(),
        to_field_name="uid",
        empty_label=_("choose one"),
        help_text=_("All steps use it: to learn, to calibrate, and to measure on held-out rows."),
    )
    chip = forms.ChoiceField(label=_("Chip"))
    cards = forms.IntegerField(label=_("Cards for each step"), initial=1)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        for name, rows in (
            ("model_version", models.model_versions_usable(user)),
            ("dataset_version", models.dataset_versions_usable(user)),
        ):
            self.row_choice(name).queryset = rows
            newest = rows.order_by("-pk").values_list("uid", flat=True).first()
            if not self.is_bound and newest:
                # People mostly go on with what they brought or made last.
                self.initial.setdefault(name, newest)
        cards = fleet.cards_by_chip()
        # Of what there is most, it is easiest to get some.
        names = sorted(cards, key=lambda each: (-cards[each]["usable"], each)) or [_FALLBACK_CHIP]
        self.choice("chip").choices = [(each, each) for each in names]


class PipelineForm:
    """The head and the sections together, as one form."""

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        user: User,
        initial: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        known = initial or {}
        self.is_bound = data is not None
        self.head = HeadForm(data, user=user, initial=dict(known.get("", {})))
        self.sections: list[SectionForm] = [
            place.form(data, prefix=place.prefix, initial=dict(known.get(place.prefix, {})))
            for place in PLACES
        ]

    def is_valid(self) -> bool:
        # Each is asked, so that everything wrong is said at once.
        return all([self.head.is_valid(), *(section.is_valid() for section in self.sections)])

    @property
    def wanted(self) -> list[SectionForm]:
        return [section for section in self.sections if section.is_wanted]

    def request(self) -> PipelineRequest:
        """What the filled form asks for."""
        head = self.head.cleaned_data
        named: str = head["model_version"].line.name
        steps: list[StepRequest] = []
        for section in self.wanted:
            step = section.step(head, named=named)
            named = step.output_name if step.kind in MAKING else named
            steps.append(step)
        return PipelineRequest(
            name=head["name"] or head["dataset_version"].dataset.name,
            model_version=head["model_version"],
            queue=head["queue"],
            steps=tuple(steps),
        )

    def add_findings(self, findings: Iterable[FieldFinding]) -> None:
        """Each beside its field: of a step in its section, of what all steps share in the head."""
        wanted = self.wanted
        for finding in findings:
            first, _dot, rest = finding.field.partition(".")
            place, _dot, field = rest.partition(".")
            of_a_step = first == "steps" and place.isdecimal()
            if not of_a_step:
                self.head.add_findings([finding])
            elif HeadForm.finding_fields.get(field, field) not in self.head.fields:
                wanted[int(place) - 1].add_findings([replace(finding, field=field)])
            elif finding.message not in _said(self.head):
                self.head.add_findings([replace(finding, field=field)])

    def wrong(self) -> Iterator[tuple[str, Any, list[str]]]:
        """The name of the field in the page, its label, and what is wrong with it."""
        for form in (self.head, *self.sections):
            for name, errors in form.errors.items():
                label: Any = form.fields[name].label if name in form.fields else ""
                if not label and isinstance(form, SectionForm):
                    label = form.title
                yield form.add_prefix(name), label, [str(error) for error in errors]


def _said(form: PlainForm) -> set[str]:
    return {str(error) for errors in form.errors.values() for error in errors}


def fits(pipeline: Pipeline) -> bool:
    """Whether the form has a section for each of its steps, in their order."""
    return not _placed(list(pipeline.steps.all()))[1]


def _placed(steps: list[Step]) -> tuple[dict[str, Step], list[Step]]:
    """The steps by the prefixes of their sections, and those for which there is none."""
    left, found = list(steps), {}
    for place in PLACES:
        if left and left[0].kind == place.form.kind:
            found[place.prefix] = left.pop(0)
    return found, left


def initial_of(pipeline: Pipeline) -> dict[str, dict[str, Any]]:
    """A form that asks for the same again."""
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
    placed, _left = _placed(steps)
    return {
        "": head,
        **{
            place.prefix: place.form.initial_of(placed[place.prefix])
            if place.prefix in placed
            else {"wanted": False}
            for place in PLACES
        },
    }
