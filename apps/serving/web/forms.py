"""Deployments and keys of the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.accounts.web.forms import EXPIRIES, TeamForm
from apps.models import selectors as models
from apps.models.models import ModelVersion
from apps.quotas import selectors as quotas
from apps.serving import selectors
from apps.serving.services.deployments import Configuration
from controlplane.ports import registry
from controlplane.ports.engines import Task
from controlplane.web.forms import PlainForm

ENGINE = "transformers"


class ConfigurationForm(PlainForm):
    """What one revision serves, and how."""

    more = ("chip", "cards", "precision", "queue_size")
    finding_fields: ClassVar[Mapping[str, str]] = {"chips": "chip"}

    model_version = forms.ModelChoiceField(
        label=_("Model"),
        queryset=ModelVersion.objects.none(),
        to_field_name="uid",
        empty_label=_("choose one"),
    )
    chip = forms.ChoiceField(label=_("Chip"))
    cards = forms.IntegerField(label=_("Cards of one replica"), initial=1)
    precision = forms.ChoiceField(
        label=_("Precision"),
        choices=[("auto", _("automatic")), ("float32", "float32"), ("bfloat16", "bfloat16")],
        required=False,
    )
    queue_size = forms.IntegerField(label=_("Requests that may wait"), required=False)

    def offer(self, user: User) -> None:
        """Fill the choices with what this person may use."""
        version, chip = self.fields["model_version"], self.fields["chip"]
        assert isinstance(version, forms.ModelChoiceField)  # noqa: S101 - declared above
        assert isinstance(chip, forms.ChoiceField)  # noqa: S101 - declared above
        version.queryset = models.model_versions_usable(user)
        chip.choices = [(name, name) for name in registry.chips()]
        defaults = registry.engine(ENGINE).normalise(Task.SERVE, {})
        self.fields["queue_size"].widget.attrs["placeholder"] = defaults.get("queue_size", "")

    def configuration(self) -> Configuration:
        """What the filled form describes; empty fields are the engine's to fill."""
        values = self.cleaned_data
        spec = {name: values[name] for name in ("precision", "queue_size") if values[name]}
        return Configuration(
            model_version=values["model_version"],
            engine=ENGINE,
            spec=spec,
            chips=(values["chip"],),
            cards=values["cards"],
        )


class RevisionForm(ConfigurationForm):
    """Another configuration of a deployment that is there."""

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer(user)


class DeploymentForm(TeamForm, ConfigurationForm):
    """A new deployment."""

    field_order = ("team", "model_version", "name", "replicas")

    name = forms.SlugField(
        label=_("Name"),
        max_length=80,
        help_text=_("Callers use it as the model's name; it is unique across the company."),
    )
    replicas = forms.IntegerField(label=_("Replicas"), initial=1)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.offer(user)

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("team") is not None:
            values["queue"] = quotas.queue_default(values["team"])
            if values["queue"] is None:
                raise ValidationError(
                    gettext("No queue is open to team %(team)s; an administrator can open one.")
                    % {"team": values["team"]}
                )
        return values


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
        routes = self.fields["routes"]
        assert isinstance(routes, forms.MultipleChoiceField)  # noqa: S101 - declared above
        names = selectors.deployments_visible(user).order_by("name").values_list("name", flat=True)
        routes.choices = [(name, name) for name in names]


class PlaygroundForm(PlainForm):
    """A question to a deployment."""

    message = forms.CharField(
        label=_("Message"), widget=forms.Textarea(attrs={"rows": 3, "autofocus": True})
    )
    temperature = forms.FloatField(
        label=_("Temperature"),
        min_value=0,
        max_value=2,
        initial=0,
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.1"}),
    )
    top_p = forms.FloatField(
        label=_("Top p"),
        min_value=0,
        max_value=1,
        initial=1,
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.05"}),
    )
    max_tokens = forms.IntegerField(
        label=_("Most tokens"), min_value=1, max_value=100_000, initial=256, required=False
    )

    def parameters(self) -> dict[str, Any]:
        """What was filled in, by the names of the interface."""
        names = ("temperature", "top_p", "max_tokens")
        values = self.cleaned_data
        return {name: values[name] for name in names if values[name] is not None}
