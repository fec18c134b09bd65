"""Deployments and keys of the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.urls import reverse_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.accounts.web.forms import EXPIRIES, TeamForm
from apps.fleet import selectors as fleet
from apps.jobs.web.forms import QueuedForm
from apps.models import selectors as models
from apps.models.models import ModelVersion
from apps.serving import selectors
from apps.serving.models import Revision
from apps.serving.selectors.engines import engine_best
from apps.serving.services.configurations import Configuration
from apps.serving.web.engine_fields import NAMES, PLACED, drawn, engine_field
from controlplane.domain.fields import at_path, put_at
from controlplane.ports import registry
from controlplane.ports.engines import Task
from controlplane.web.forms import PlainForm

#: Which of the engine's fields can be had depends on these.
_REDRAWS: Mapping[str, Any] = {
    "hx-post": reverse_lazy("deployment-fields"),
    "hx-target": "#engine-fields",
    "hx-trigger": "change",
    "hx-include": "closest form",
    "hx-params": "not once",
}


class ConfigurationForm(PlainForm):
    """What one revision serves, and how."""

    more = ("engine", "cards", *NAMES)
    finding_fields: ClassVar[Mapping[str, str]] = {"chips": "chip", "model": "model_version"}

    model_version = forms.ModelChoiceField(
        label=_("Model"),
        queryset=ModelVersion.objects.none(),
        to_field_name="uid",
        empty_label=_("choose one"),
    )
    chip = forms.ChoiceField(label=_("Chip"))
    cards = forms.IntegerField(label=_("Cards of one replica"), initial=1, min_value=1)

    def offer(self, user: User) -> None:
        """Fill the choices with what this person may use, and draw the engine's fields."""
        version, chip = self.row_choice("model_version"), self.choice("chip")
        version.queryset = models.model_versions_usable(user)
        there = fleet.cards_by_chip()
        chip.choices = [
            (name, name if name in there else gettext("%(chip)s – none here") % {"chip": name})
            for name, chip in sorted(registry.chips().items(), key=lambda one: one[0] not in there)
            if name in there or not chip.slice_of
        ]
        self._draw(chip.choices[0][0], version.queryset)

    def _draw(self, first_chip: str, versions: QuerySet[ModelVersion]) -> None:
        chip = registry.chips().get(self._chosen("chip") or first_chip)
        uid = self._chosen("model_version")
        version = versions.filter(uid=uid).first() if uid else None
        facts = models.model_facts(version) if version else None
        self.fields["engine"] = engine_field(chip=chip, model=facts)
        engine = self._chosen("engine")
        if engine not in registry.engine_names() or (
            Task.SERVE not in registry.engine(engine).tasks
        ):
            engine = engine_best(chip=chip, model=facts) if chip else registry.engine_names()[0]
        self.fields |= drawn(engine=engine, chip=chip, model=facts)
        for name in ("engine", *NAMES):
            self.dress(self.fields[name])
        for name in ("model_version", "chip", "engine"):
            self.fields[name].widget.attrs |= _REDRAWS

    def _chosen(self, name: str) -> str:
        return str(self.data.get(name) or self.initial.get(name) or "")

    @property
    def engine_fields(self) -> list[forms.BoundField]:
        """Those of the engine, which are folded away."""
        return [self[name] for name in NAMES]

    @property
    def engine_open(self) -> bool:
        """An engine was chosen, or something of it is wrong or was asked for, so it must be seen."""
        return bool(self["engine"].value()) or any(
            field.errors or field.value() not in (None, "", field.field.initial)
            for field in self.engine_fields
        )

    def configuration(self) -> Configuration:
        """What the filled form describes; empty fields are the engine's to fill."""
        values = self.cleaned_data
        return Configuration(
            model_version=values["model_version"],
            engine=values["engine"],
            spec=self._filled(),
            chips=(values["chip"],),
            cards=values["cards"],
        )

    def _filled(self) -> dict[str, Any]:
        """The spec as far as it was filled in; what is greyed out was not."""
        spec: dict[str, Any] = {}
        for path, placed in PLACED.items():
            value = self.cleaned_data.get(placed.name)
            if value not in (None, "") and not self.fields[placed.name].disabled:
                put_at(spec, path, value)
        return spec


class RevisionForm(ConfigurationForm):
    """Another configuration of a deployment that is there; it begins with the newest one's fields."""

    def __init__(self, *args: Any, user: User, newest: Revision, **kwargs: Any) -> None:
        shown = {
            "model_version": newest.model_version.uid,
            "chip": newest.chips[0],
            "engine": newest.engine,
            "cards": newest.cards,
            **{placed.name: at_path(newest.spec, path) for path, placed in PLACED.items()},
        }
        super().__init__(*args, initial=shown, **kwargs)
        self._newest = newest
        self.offer(user)

    def configuration(self) -> Configuration:
        """What the form does not show stays as it is in the newest revision."""
        asked = super().configuration()
        shown = {path.partition(".")[0] for path in PLACED}
        unseen = {name: value for name, value in self._newest.spec.items() if name not in shown}
        chips = self._newest.chips
        return replace(
            asked,
            spec={**unseen, **asked.spec},
            chips=tuple(chips) if asked.chips[0] == chips[0] else asked.chips,
        )


class DeploymentForm(QueuedForm, ConfigurationForm):
    """A new deployment."""

    field_order = ("team", "model_version", "name", "replicas", "chip", "engine", "cards")

    name = forms.SlugField(
        label=_("Name"),
        max_length=80,
        help_text=_("Callers use it as the model's name; it is unique across the company."),
    )
    replicas = forms.IntegerField(label=_("Replicas"), initial=1, min_value=1)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.offer(user)
        self.order_fields(self.field_order)

    def check_name(self) -> None:
        """Say beside it that somebody serves under the name, before the form is sent."""
        name = self.cleaned_data["name"]
        if (free := selectors.route_name_free(name)) != name:
            words = gettext("“%(name)s” is taken; “%(free)s” is free.")
            self.add_error("name", words % {"name": name, "free": free})


class KeyForm(TeamForm):
    """A key of the gateway."""

    more = ("routes", "requests_per_minute", "tokens_per_minute", "concurrency")

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("What it is for, to tell it apart later.")
    )
    expires = forms.ChoiceField(
        label=_("Expires after"), choices=EXPIRIES, required=False, initial="90"
    )
    routes = forms.MultipleChoiceField(
        label=_("Only these deployments (none: all of the team's)"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    requests_per_minute = forms.IntegerField(
        label=_("Most requests a minute"), min_value=1, required=False
    )
    tokens_per_minute = forms.IntegerField(
        label=_("Most tokens a minute"), min_value=1, required=False
    )
    concurrency = forms.IntegerField(label=_("Most requests at once"), min_value=1, required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        rows = selectors.deployments_visible(user).order_by("name")
        self._teams = dict(rows.values_list("name", "team"))
        self.choice("routes").choices = [(name, name) for name in self._teams]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        team = values.get("team")
        if team is not None:
            strange = [name for name in values.get("routes", ()) if self._teams[name] != team.pk]
            if strange:
                words = gettext("Not of team %(team)s, so its keys cannot call them: %(names)s.")
                self.add_error("routes", words % {"team": team, "names": ", ".join(strange)})
        return values


class RotationForm(PlainForm):
    """How long the old key goes on beside the new one, in hours."""

    overlap = forms.TypedChoiceField(
        label=_("The old key works for"),
        choices=[
            ("0", _("no longer: it is revoked at once")),
            ("1", _("1 hour more")),
            ("24", _("1 day more")),
            ("168", _("7 days more")),
        ],
        coerce=int,
        initial="24",
    )


class PlaygroundForm(PlainForm):
    """A question to a deployment. Settings stand beside the conversation, and belong to its form."""

    settings: ClassVar[tuple[str, ...]] = ("system", "temperature", "top_p", "max_tokens")

    message = forms.CharField(
        label=_("Message"),
        widget=forms.Textarea(attrs={"rows": 2, "autofocus": True, "placeholder": _("Message")}),
    )
    system = forms.CharField(
        label=_("System prompt"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("What the model is told before the conversation."),
    )
    temperature = forms.FloatField(
        label=_("Temperature"),
        min_value=0,
        max_value=2,
        initial=0,
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.1"}),
        help_text=_("0: always the likeliest word."),
    )
    top_p = forms.FloatField(
        label=_("Top p"),
        min_value=0,
        max_value=1,
        initial=1,
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.05"}),
        help_text=_("1: every word may be chosen."),
    )
    max_tokens = forms.IntegerField(
        label=_("Most tokens"), min_value=1, max_value=100_000, initial=256, required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.settings:
            self.fields[name].widget.attrs["form"] = "playground"

    @property
    def setting_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.settings]

    def messages(self) -> list[dict[str, str]]:
        """The conversation that was filled in, as the interface takes it."""
        values = self.cleaned_data
        before = [{"role": "system", "content": values["system"]}] if values["system"] else []
        return [*before, {"role": "user", "content": values["message"]}]

    def parameters(self) -> dict[str, Any]:
        """What was filled in, by the names of the interface."""
        names = ("temperature", "top_p", "max_tokens")
        values = self.cleaned_data
        return {name: values[name] for name in names if values[name] is not None}
