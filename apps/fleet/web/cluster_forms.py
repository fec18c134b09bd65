"""Forms by which a cluster is registered and changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.fleet import selectors
from apps.fleet.models import Cluster
from apps.fleet.services.clusters import Change, Registration
from controlplane.web.forms import PlainForm

KINDS = {"kubernetes": _("Kubernetes"), "volcano": _("Kubernetes with Volcano")}
#: Options that have a field of their own.
_FIELDS = ("control_url", "in_cluster")


class ClusterForm(PlainForm):
    """What can be changed of a cluster later as well."""

    more = ("options", "binding")

    kubeconfig = forms.CharField(
        label=_("Kubeconfig"),
        required=False,
        max_length=300_000,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 8, "class": "form-control nf-mono", "spellcheck": "false"}
        ),
    )
    in_cluster = forms.BooleanField(
        label=_("Ninefold runs inside of this cluster, by the account of its own pod"),
        required=False,
    )
    control_url = forms.URLField(
        label=_("Address of Ninefold for its pods"),
        required=False,
        max_length=400,
        assume_scheme="https",
        widget=forms.TextInput(attrs={"placeholder": "https://ninefold.example.com"}),
        help_text=_(
            "Where jobs report. Empty: the address of this installation, which pods often cannot reach."
        ),
    )
    options = forms.JSONField(
        label=_("Options"),
        required=False,
        initial=dict,
        widget=forms.Textarea(
            attrs={"rows": 6, "class": "form-control nf-mono", "spellcheck": "false"}
        ),
        help_text=_(
            "JSON: where files lie on its nodes and how pods are built, such as "
            '{"namespace": "ninefold", "image": "registry.example.com/engine:1", '
            '"store": {"claim": "artifacts"}}.'
        ),
    )
    binding = forms.ChoiceField(
        label=_("Who chooses the cards of a node"),
        choices=[
            (Cluster.Binding.NODE.value, _("the cluster's device plug-in")),
            (Cluster.Binding.CARD.value, _("Ninefold")),
        ],
    )
    although_unfit = forms.BooleanField(label=_("Keep it although checks fail"), required=False)

    @property
    def first_fields(self) -> list[forms.BoundField]:
        """Without the box that stands beside the checks that failed."""
        return [field for field in super().first_fields if field.name != "although_unfit"]

    def clean_options(self) -> dict[str, Any]:
        given = self.cleaned_data["options"] or {}
        if not isinstance(given, dict):
            raise forms.ValidationError(
                gettext('Options are a JSON object, such as {"namespace": "ninefold"}.')
            )
        for name in _FIELDS:
            if name in given:
                raise forms.ValidationError(
                    gettext("%(name)s has a field of its own; leave it out here.") % {"name": name}
                )
        return given

    @property
    def chosen_options(self) -> Mapping[str, Any]:
        """All options, those with a field of their own included."""
        values = self.cleaned_data
        own = {name: values[name] for name in _FIELDS if values[name]}
        return {**values["options"], **own}


class ClusterNewForm(ClusterForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=40,
        help_text=_("Small Latin letters, digits and hyphens. It cannot be changed later."),
    )
    kind = forms.ChoiceField(label=_("Kind"))

    field_order = ("name", "kind", "kubeconfig", "in_cluster", "control_url", "options", "binding")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = selectors.remote_kinds()
        self.choice("kind").choices = [(kind, KINDS.get(kind, kind)) for kind in kinds]
        self.fields["kubeconfig"].help_text = _(
            "Of an account that may make namespaces and pods there. Its token or certificate must stand in "
            "it; what would run a program or read a file is refused. It is kept encrypted and never shown."
        )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not values.get("kubeconfig", "").strip() and not values.get("in_cluster"):
            self.add_error(
                "kubeconfig",
                gettext("Paste a kubeconfig, or say that Ninefold runs inside of this cluster."),
            )
        return values

    @property
    def registration(self) -> Registration:
        """The cluster as the valid form describes it."""
        values = self.cleaned_data
        return Registration(
            name=values["name"],
            kind=values["kind"],
            options=self.chosen_options,
            binding=values["binding"],
            kubeconfig=values["kubeconfig"],
        )


class ClusterChangeForm(ClusterForm):
    def __init__(self, *args: Any, cluster: Cluster, **kwargs: Any) -> None:
        own = {name: cluster.options.get(name) for name in _FIELDS}
        rest = {name: value for name, value in cluster.options.items() if name not in _FIELDS}
        initial = {**own, "options": rest, "binding": cluster.binding}
        super().__init__(*args, initial=initial, **kwargs)
        self.fields["kubeconfig"].help_text = _(
            "Only to replace the one that is kept; leave it empty to go on with that."
        )

    @property
    def change(self) -> Change:
        """What the valid form changes."""
        values = self.cleaned_data
        return Change(
            options=self.chosen_options,
            binding=values["binding"],
            kubeconfig=values["kubeconfig"] if values["kubeconfig"].strip() else None,
        )
