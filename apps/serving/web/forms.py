"""Forms of deployments, revisions, API keys and the playground.

The engine's fields in the form of a deployment come from its spec; unavailable ones are disabled, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from apps.jobs.web.form_fields import (
    SelectWithDisabledChoices,
    SpecFormField,
    apply_field_limits,
    disable_choices,
    flatten_fields,
    form_field_of_spec_field,
    show_default,
)
from apps.jobs.web.forms import QueuedWorkloadForm
from apps.models import selectors as models
from apps.models.models import ModelVersion
from apps.serving import selectors
from apps.serving.models import Revision
from apps.serving.selectors.lora_adapters import (
    AdapterConfiguration,
    adapters_unsupported_reason,
)
from apps.serving.selectors.revision_configurations import (
    RevisionConfiguration,
    best_engine,
    engine_choices,
    engine_field_limits,
    replica_node_counts,
)
from apps.serving.services.deployments import DEFAULT_STRATEGY
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import SpecField, set_value_at_path, value_at_path
from controlplane.domain.quotas.claims import MOST_CARDS
from controlplane.domain.serving.rollouts import RolloutStrategy
from controlplane.domain.specs.serving import SERVE
from controlplane.ports import adapter_registry
from controlplane.ports.engines import EngineTask, ModelFacts
from controlplane.web.forms import StyledForm, row_choice_field
from controlplane.web.reasons import render_reason

#: Set to the deployment's name.
_SET_BY_NINEFOLD = frozenset({"model_name"})


def _settable_fields(fields: Sequence[SpecField]) -> dict[str, SpecFormField]:
    """Fields that a user may set, by dotted path."""
    return {each.path: each for each in flatten_fields(fields) if each.path not in _SET_BY_NINEFOLD}


#: Every field that some serving engine supports.
SPEC_FIELDS = _settable_fields(SERVE)
#: Names of the form's fields, in the order of the spec.
SPEC_FIELD_NAMES = tuple(each.name for each in SPEC_FIELDS.values())


def engine_field(
    *, chip: Chip | None, model: ModelFacts | None, nodes: int = 1
) -> forms.ChoiceField:
    """A choice of all serving engines, the best for so many nodes with the chip first; empty means automatic."""
    field = forms.ChoiceField(label=_("Engine"), required=False, widget=SelectWithDisabledChoices())
    if chip is None:
        return field
    choices = engine_choices(chip=chip, model=model, nodes=nodes)
    best = gettext("automatic: %(engine)s") % {"engine": choices[0].title}
    field.choices = [("", best), *((each.name, each.title) for each in choices)]
    disable_choices(
        field, {each.name: each.unavailable_reason for each in choices if each.unavailable_reason}
    )
    return field


def spec_form_fields(
    *, engine: str, chip: Chip | None, model: ModelFacts | None
) -> dict[str, forms.Field]:
    """A form field for each field of the spec; those that the engine does not support are disabled."""
    adapter = adapter_registry.engine_by_name(engine)
    supported = _settable_fields(adapter.fields(EngineTask.SERVE))
    defaults = adapter.normalise(EngineTask.SERVE, {})
    limits = engine_field_limits(engine, chip=chip, model=model) if chip else ()
    missing = gettext("%(engine)s does not support this field.") % {
        "engine": adapter.profile().title
    }
    fields = {}
    for path, placed in SPEC_FIELDS.items():
        form_control = form_field_of_spec_field(placed.field)
        show_default(form_control, value_at_path(defaults, path))
        if path in supported:
            apply_field_limits(form_control, placed, limits)
        else:
            form_control.disabled = True
            form_control.help_text = missing
        fields[placed.name] = form_control
    return fields


#: Prefix of the fields of LoRA adapters; the rest is the uid of the adapter's version.
_ADAPTER_PREFIX = "adapter_"


def lora_adapter_form_fields(
    *, engine: str, base: ModelVersion | None, versions: Sequence[ModelVersion]
) -> dict[str, forms.Field]:
    """A field for the name of each LoRA adapter; disabled if the engine serves no adapters."""
    adapter = adapter_registry.engine_by_name(engine)
    reason = adapters_unsupported_reason(adapter, base=base)
    fields: dict[str, forms.Field] = {}
    for version in versions:
        field = forms.SlugField(
            label=str(version),
            required=False,
            max_length=80,
            help_text=render_reason(reason) if reason else "",
            disabled=bool(reason),
        )
        field.widget.attrs["placeholder"] = gettext("not served")
        fields[f"{_ADAPTER_PREFIX}{version.uid}"] = field
    return fields


#: Attributes of widgets whose change reloads the engine's fields.
_REFRESHES_ENGINE_FIELDS: Mapping[str, Any] = {
    "hx-post": reverse_lazy("deployment-fields"),
    "hx-target": "#engine-fields",
    "hx-trigger": "change",
    "hx-include": "closest form",
    "hx-params": "not once",
}


class RevisionConfigurationForm(StyledForm):
    """The configuration of one revision."""

    more = ("engine", "cards", "max_surge", "max_unavailable", *SPEC_FIELD_NAMES)
    finding_fields: ClassVar[Mapping[str, str]] = {"chips": "chip", "model": "model_version"}

    model_version = row_choice_field(ModelVersion, _("Model"))
    chip = forms.ChoiceField(label=_("Chip"))
    cards = forms.IntegerField(
        label=_("Cards per replica"),
        initial=1,
        min_value=1,
        help_text=_(
            "Cards of one node, or a multiple of all cards of a node for a replica on several nodes. Default: 1."
        ),
    )
    max_surge = forms.CharField(
        label=_("Max surge"),
        initial=DEFAULT_STRATEGY.max_surge,
        max_length=4,
        required=False,
        help_text=_(
            "Replicas beyond the wanted number during a rollout: 0 to 64, or 0% to 100% of the replicas, rounded "
            "up. Default: 1."
        ),
    )
    max_unavailable = forms.CharField(
        label=_("Max unavailable"),
        initial=DEFAULT_STRATEGY.max_unavailable,
        max_length=4,
        required=False,
        help_text=_(
            "Replicas that may be missing during a rollout: 0 to 64, or 0% to 100% of the replicas, rounded down; "
            "not 0 if max surge is 0. Default: 0."
        ),
    )

    def fill_choices(self, user: User) -> None:
        """Fill the choices with what the user may use, and add the engine's fields."""
        self._user = user
        version, chip = self.model_choice_field("model_version"), self.choice("chip")
        version.queryset = models.model_versions_usable(user)
        fleet_chips = fleet.cards_by_chip()
        chip.choices = [
            (
                name,
                name
                if name in fleet_chips
                else gettext("%(chip)s (none in the fleet)") % {"chip": name},
            )
            for name, chip in sorted(
                adapter_registry.all_chips().items(), key=lambda one: one[0] not in fleet_chips
            )
            if name in fleet_chips or not chip.slice_of
        ]
        self._add_engine_fields(chip.choices[0][0], version.queryset)

    def _offered_adapters(self, base: ModelVersion | None) -> Sequence[ModelVersion]:
        return models.lora_adapters_of(base, user=self._user) if base is not None else ()

    def _add_engine_fields(self, first_chip: str, versions: QuerySet[ModelVersion]) -> None:
        chip = adapter_registry.all_chips().get(self._selected_value("chip") or first_chip)
        uid = self._selected_value("model_version")
        version = versions.filter(uid=uid).first() if uid else None
        facts = models.engine_model_facts(version) if version else None
        cards = self._selected_value("cards")
        nodes = 1
        if chip and cards.isdecimal() and len(cards) <= len(str(MOST_CARDS)):
            nodes = replica_node_counts([chip.name], min(int(cards), MOST_CARDS))[0]
        self.fields["engine"] = engine_field(chip=chip, model=facts, nodes=nodes)
        engine = self._selected_value("engine")
        if engine not in adapter_registry.engine_names() or (
            EngineTask.SERVE not in adapter_registry.engine_by_name(engine).tasks
        ):
            engine = (
                best_engine(chip=chip, model=facts, nodes=nodes)
                if chip
                else adapter_registry.engine_names()[0]
            )
        self.fields |= spec_form_fields(engine=engine, chip=chip, model=facts)
        self._adapter_versions = {
            f"{_ADAPTER_PREFIX}{one.uid}": one for one in self._offered_adapters(version)
        }
        self.fields |= lora_adapter_form_fields(
            engine=engine, base=version, versions=list(self._adapter_versions.values())
        )
        for name in ("engine", *SPEC_FIELD_NAMES, *self._adapter_versions):
            self.dress(self.fields[name])
        for name in ("model_version", "chip", "engine", "cards"):
            self.fields[name].widget.attrs |= _REFRESHES_ENGINE_FIELDS

    def _selected_value(self, name: str) -> str:
        return str(self.data.get(name) or self.initial.get(name) or "")

    @property
    def first_fields(self) -> list[forms.BoundField]:
        return [field for field in super().first_fields if field.name not in self._adapter_versions]

    @property
    def adapter_fields(self) -> list[forms.BoundField]:
        """The names of the LoRA adapters of the chosen model."""
        return [self[name] for name in self._adapter_versions]

    @property
    def engine_fields(self) -> list[forms.BoundField]:
        """The engine's fields, in the collapsed section."""
        return [self[name] for name in SPEC_FIELD_NAMES]

    @property
    def strategy_fields(self) -> list[forms.BoundField]:
        """The fields of the rollout strategy, in the collapsed section."""
        return [self["max_surge"], self["max_unavailable"]]

    @property
    def engine_open(self) -> bool:
        """Whether the section is expanded: an engine is chosen, or one of its fields has a value or an error."""
        return bool(self["engine"].value()) or any(
            field.errors or field.value() not in (None, "", field.field.initial)
            for field in (*self.engine_fields, *self.strategy_fields)
        )

    def strategy(self) -> RolloutStrategy:
        """The rollout strategy in the form; empty fields get the defaults."""
        given = {name: self.cleaned_data.get(name) for name in ("max_surge", "max_unavailable")}
        return RolloutStrategy(**{name: value for name, value in given.items() if value})

    def configuration(self) -> RevisionConfiguration:
        """The configuration in the form; empty fields get the engine's defaults."""
        values = self.cleaned_data
        return RevisionConfiguration(
            model_version=values["model_version"],
            engine=values["engine"],
            spec=self._filled_spec(),
            chips=(values["chip"],),
            cards=values["cards"],
            adapters=tuple(
                AdapterConfiguration(name=values[field], model_version=version)
                for field, version in self._adapter_versions.items()
                if values.get(field)
            ),
        )

    def _filled_spec(self) -> dict[str, Any]:
        """The spec of the fields that have a value and are enabled."""
        spec: dict[str, Any] = {}
        for path, placed in SPEC_FIELDS.items():
            value = self.cleaned_data.get(placed.name)
            if value not in (None, "", []) and not self.fields[placed.name].disabled:
                set_value_at_path(spec, path, value)
        return spec


class RevisionForm(RevisionConfigurationForm):
    """A new revision of an existing deployment, with the values of the newest one."""

    def __init__(self, *args: Any, user: User, newest: Revision, **kwargs: Any) -> None:
        shown = {
            "model_version": newest.model_version.uid,
            "chip": newest.chips[0],
            "engine": newest.engine,
            "cards": newest.cards,
            "max_surge": newest.deployment.max_surge,
            "max_unavailable": newest.deployment.max_unavailable,
            **{
                placed.name: value_at_path(newest.spec, path)
                for path, placed in SPEC_FIELDS.items()
            },
            **{
                f"{_ADAPTER_PREFIX}{one.model_version.uid}": one.name
                for one in selectors.revision_adapters(newest)
            },
        }
        super().__init__(*args, initial=shown, **kwargs)
        self._newest = newest
        self.fill_choices(user)

    def configuration(self) -> RevisionConfiguration:
        """The configuration in the form, with settings of the newest revision that the form does not show."""
        filled = super().configuration()
        shown = {path.partition(".")[0] for path in SPEC_FIELDS}
        hidden = {name: value for name, value in self._newest.spec.items() if name not in shown}
        chips = self._newest.chips
        return replace(
            filled,
            spec={**hidden, **filled.spec},
            chips=tuple(chips) if filled.chips[0] == chips[0] else filled.chips,
        )


class DeploymentForm(QueuedWorkloadForm, RevisionConfigurationForm):
    """A new deployment."""

    field_order = ("team", "model_version", "name", "replicas", "chip", "engine", "cards")

    name = forms.SlugField(
        label=_("Name"),
        max_length=80,
        help_text=_("Model name in API requests. Unique across all teams."),
    )
    replicas = forms.IntegerField(label=_("Replicas"), initial=1, min_value=1)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.fill_choices(user)
        self.order_fields(self.field_order)

    def check_name(self) -> None:
        """Add an error to the field if the name is taken."""
        name = self.cleaned_data["name"]
        if (free := selectors.first_available_route_name(name)) != name:
            message = gettext("The name “%(name)s” is already used; “%(free)s” is available.")
            self.add_error("name", message % {"name": name, "free": free})


class ApiKeyForm(TeamForm):
    """A new API key of the gateway."""

    more = ("routes", "requests_per_minute", "tokens_per_minute", "concurrency")

    name = forms.CharField(label=_("Name"), max_length=80, help_text=_("Purpose of the key."))
    expires = forms.ChoiceField(
        label=_("Expires after"), choices=EXPIRIES, required=False, initial="90"
    )
    routes = forms.MultipleChoiceField(
        label=_("Deployments (none selected: all deployments of the team)"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    requests_per_minute = forms.IntegerField(
        label=_("Max requests per minute"), min_value=1, required=False
    )
    tokens_per_minute = forms.IntegerField(
        label=_("Max tokens per minute"), min_value=1, required=False
    )
    concurrency = forms.IntegerField(
        label=_("Max concurrent requests"), min_value=1, required=False
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        rows = selectors.deployments_visible(user)
        named = rows.values_list("name", "team")
        adapters = rows.filter(adapter_routes__isnull=False).values_list(
            "adapter_routes__name", "team"
        )
        self._teams = dict(sorted({*named, *adapters}))
        self.choice("routes").choices = [(name, name) for name in self._teams]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        team = values.get("team")
        if team is not None:
            foreign = [name for name in values.get("routes", ()) if self._teams[name] != team.pk]
            if foreign:
                message = gettext(
                    "Select deployments of team %(team)s only; other teams own: %(names)s."
                )
                self.add_error("routes", message % {"team": team, "names": ", ".join(foreign)})
        return values


class ApiKeyRotationForm(StyledForm):
    """How long the old key stays valid beside the new one, in hours."""

    overlap = forms.TypedChoiceField(
        label=_("Expiry of the old key"),
        choices=[
            ("0", _("immediately")),
            ("1", _("in 1 hour")),
            ("24", _("in 1 day")),
            ("168", _("in 7 days")),
        ],
        coerce=int,
        initial="24",
    )


class PlaygroundForm(StyledForm):
    """A message to a deployment, with sampling settings that are placed beside the conversation."""

    settings: ClassVar[tuple[str, ...]] = ("system", "temperature", "top_p", "max_tokens")

    message = forms.CharField(
        label=_("Message"),
        widget=forms.Textarea(attrs={"rows": 2, "autofocus": True, "placeholder": _("Message")}),
    )
    system = forms.CharField(
        label=_("System prompt"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Instructions for the model before the conversation."),
    )
    temperature = forms.FloatField(
        label=_("Temperature"),
        min_value=0,
        max_value=2,
        initial=0,
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.1"}),
        help_text=_("Randomness of sampling; 0 always selects the most likely token."),
    )
    top_p = forms.FloatField(
        label=_("Top p"),
        min_value=0,
        max_value=1,
        initial=1,
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.05"}),
        help_text=_("Share of probability to sample from; 1 means all tokens."),
    )
    max_tokens = forms.IntegerField(
        label=_("Max tokens"), min_value=1, max_value=100_000, initial=256, required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.settings:
            self.fields[name].widget.attrs["form"] = "playground"

    @property
    def setting_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.settings]

    def messages(self) -> list[dict[str, str]]:
        """The conversation in the form, as ``messages`` of the OpenAI API."""
        values = self.cleaned_data
        before = [{"role": "system", "content": values["system"]}] if values["system"] else []
        return [*before, {"role": "user", "content": values["message"]}]

    def parameters(self) -> dict[str, Any]:
        """The sampling settings in the form, by their names in the OpenAI API."""
        names = ("temperature", "top_p", "max_tokens")
        values = self.cleaned_data
        return {name: values[name] for name in names if values[name] is not None}
