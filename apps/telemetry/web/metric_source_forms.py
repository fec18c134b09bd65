"""Forms of metric sources, one for each kind, and of a node's token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster, Node
from apps.telemetry.models import Source
from apps.telemetry.selectors import PUSH, readable_source_kinds
from apps.telemetry.services.metric_sources import LONGEST, SHORTEST
from controlplane.ports import adapter_registry
from controlplane.web.forms import StyledForm

#: The kind of sources whose options are a list of exporters.
EXPORTER = "exporter"
#: Characters for the maximum of 5,000 exporters with long URLs and names, which fit into a request.
LONGEST_TARGETS = 2_000_000

KIND_LABELS = {
    EXPORTER: gettext_lazy("Exporters"),
    "prometheus": gettext_lazy("Prometheus"),
    PUSH: gettext_lazy("Agents (push)"),
}


class MetricSourceForm(StyledForm):
    """What every source has, whatever it reads."""

    #: Fields that are arguments of the adapter.
    options: ClassVar[tuple[str, ...]] = ()
    #: Where the domain's refusals belong that speak of all options.
    finding_fields: ClassVar[Mapping[str, str]] = {}

    every = forms.IntegerField(
        label=gettext_lazy("Read interval (s)"),
        min_value=SHORTEST,
        max_value=LONGEST,
        initial=10,
        help_text=gettext_lazy(
            "Time between two reads. A card that is missing from three consecutive reads "
            "becomes unknown and is not scheduled."
        ),
    )
    token = forms.CharField(
        label=gettext_lazy("Token"),
        required=False,
        max_length=4000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    forget_token = forms.BooleanField(label=gettext_lazy("Delete stored token"), required=False)

    def __init__(self, *args: Any, source: Source | None = None, **kwargs: Any) -> None:
        initial = None if source is None else self.initial_values_of_job(source)
        super().__init__(*args, initial=initial, **kwargs)
        has_token = source is not None and source.credential is not None
        if has_token:
            hint = _("Replaces the stored value. Empty: the stored value is kept.")
        else:
            del self.fields["forget_token"]
            hint = _("Bearer token, if the source requires one. Stored encrypted and never shown.")
        self.fields["token"].help_text = hint
        if source is not None and source.kind == PUSH:
            del self.fields["token"]
        if "vendor" in self.fields:
            vendors = [
                ("", "---------"),
                *((one, one) for one in adapter_registry.telemetry_vendors()),
            ]
            self.choice("vendor").choices = vendors

    @classmethod
    def initial_values_of_job(cls, source: Source) -> dict[str, Any]:
        return {**source.options, "every": source.every}

    @property
    def chosen_options(self) -> dict[str, Any]:
        """Options for the adapter; empty ones are left out."""
        given = {name: self.cleaned_data[name] for name in self.options}
        return {name: value for name, value in given.items() if value not in ("", None)}

    @property
    def chosen_token(self) -> str | None:
        """None: the one that is kept stays."""
        if text := self.cleaned_data.get("token", "").strip():
            return str(text)
        return "" if self.cleaned_data.get("forget_token") else None

    def refused(self, field: str, message: str) -> None:
        """Show a refusal beside what it speaks of, or above all of it."""
        option = re.split(r"[.\[]", field)[1] if field.startswith("options.") else ""
        name = option or self.finding_fields.get(field, field)
        if name not in self.fields and option:
            name = self.finding_fields.get("options", name)
        self.add_error(name if name in self.fields else None, message)


class ExporterForm(MetricSourceForm):
    options = ("vendor", "targets")
    finding_fields: ClassVar[Mapping[str, str]] = {"options": "targets"}

    vendor = forms.ChoiceField(
        label=gettext_lazy("Vendor"),
        help_text=gettext_lazy("Vendor whose metric names the exporters use."),
    )
    targets = forms.CharField(
        label=gettext_lazy("Exporter URLs"),
        max_length=LONGEST_TARGETS,
        widget=forms.Textarea(
            attrs={
                "rows": 5,
                "class": "form-control nf-mono",
                "spellcheck": "false",
                "placeholder": "http://gpu-17:9400/metrics gpu-17",
            }
        ),
        help_text=gettext_lazy(
            "One exporter per line: URL, space, node name. The node name is optional if "
            "the exporter labels its node."
        ),
    )
    field_order = ("vendor", "targets", "every", "token", "forget_token")

    @classmethod
    def initial_values_of_job(cls, source: Source) -> dict[str, Any]:
        lines = [f"{one['url']} {one.get('node', '')}".strip() for one in source.options["targets"]]
        return {**super().initial_values_of_job(source), "targets": "\n".join(lines)}

    def clean_targets(self) -> list[dict[str, str]]:
        """:raises ValidationError: for a line with more than an address and a node."""
        found = []
        for line in filter(None, map(str.strip, self.cleaned_data["targets"].splitlines())):
            url, *rest = line.split()
            if len(rest) > 1:
                raise forms.ValidationError(
                    _("“%(line)s” must contain a URL and, optionally, a node name.")
                    % {"line": line[:200]}
                )
            found.append({"url": url, "node": rest[0]} if rest else {"url": url})
        return found


class PrometheusForm(MetricSourceForm):
    options = ("url", "vendor", "selector", "node_label", "window")
    finding_fields: ClassVar[Mapping[str, str]] = {"options": "url"}
    more = ("selector", "node_label", "window")

    url = forms.CharField(
        label=gettext_lazy("URL"),
        max_length=2000,
        widget=forms.URLInput(attrs={"placeholder": "http://prometheus.example.com:9090"}),
        help_text=gettext_lazy("URL of the Prometheus server, without a path."),
    )
    vendor = forms.ChoiceField(
        label=gettext_lazy("Vendor"),
        help_text=gettext_lazy("Vendor whose metric names the exporters use."),
    )
    selector = forms.CharField(
        label=gettext_lazy("Label selector"),
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"placeholder": 'job="dcgm"', "spellcheck": "false"}),
    )
    node_label = forms.CharField(
        label=gettext_lazy("Node label"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("Default: the label of the vendor's exporter."),
    )
    window = forms.IntegerField(
        label=gettext_lazy("Lookback (s)"),
        required=False,
        min_value=1,
        help_text=gettext_lazy("Recommended: twice the scrape interval. Default: 60."),
    )
    field_order = ("url", "vendor", "every", "token", "forget_token", *more)


FORMS: Mapping[str, type[MetricSourceForm]] = {EXPORTER: ExporterForm, "prometheus": PrometheusForm}


def offered_kinds() -> tuple[str, ...]:
    """Kinds that an installed package reads and that have a form."""
    return tuple(kind for kind in FORMS if kind in readable_source_kinds())


def source_form_class(kind: str) -> type[MetricSourceForm]:
    """The kind's own form; of one that has none only what every source has can be changed."""
    return FORMS.get(kind, MetricSourceForm)


class NewMetricSourceForm(StyledForm):
    """Cluster and kind, which cannot be changed later, above the form of the kind."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": "dcgm-east", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Lowercase Latin letters, digits and hyphens. Cannot be changed later."
        ),
    )
    cluster = forms.ModelChoiceField(
        label=gettext_lazy("Cluster"),
        queryset=Cluster.objects.none(),
        to_field_name="uid",
        help_text=gettext_lazy("Cluster whose cards this source measures."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.model_choice_field("cluster").queryset = fleet.clusters_with_counts()


class NodeTokenForm(StyledForm):
    node = forms.CharField(
        label=gettext_lazy("Node"),
        max_length=300,
        widget=forms.TextInput(attrs={"placeholder": "gpu-17", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Node name, or CLUSTER/NODE if several clusters have a node with this name."
        ),
    )

    def clean_node(self) -> Node:
        """:raises ValidationError: unless exactly one node is called that."""
        # A node's name may hold no slash; a cluster's never does.
        cluster, _slash, name = self.cleaned_data["node"].strip().rpartition("/")
        nodes = fleet.nodes_with_cluster().filter(
            name=name, **({"cluster__name": cluster} if cluster else {})
        )
        found = list(nodes.select_related("cluster")[:10])
        if len(found) == 1:
            return found[0]
        if not found:
            raise forms.ValidationError(
                _("Node “%(name)s” does not exist. The cluster page lists the nodes.")
                % {"name": self.cleaned_data["node"]}
            )
        names = ", ".join(sorted(f"{one.cluster.name}/{one.name}" for one in found))
        raise forms.ValidationError(
            _("Several nodes have this name. Enter one of: %(names)s") % {"names": names}
        )
