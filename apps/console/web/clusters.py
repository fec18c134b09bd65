"""Pages and forms of clusters: list, detail, register, change, check, remove."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet import selectors
from apps.fleet.models import Cluster
from apps.fleet.services import clusters as services
from apps.fleet.services.clusters import ClusterChange, ClusterRegistration
from apps.serving.selectors import workloads_using_cluster
from controlplane.domain.common.permissions import Permission
from controlplane.ports.clusters import CheckVerdict, ClusterCheck
from controlplane.web.forms import StyledForm, submitted_data
from controlplane.web.pages import render_form, row_action_view, save_form
from controlplane.web.reasons import render_reason
from controlplane.web.tables import FilterForm, ListTable, TableColumn

KINDS = {"kubernetes": _("Kubernetes"), "volcano": _("Kubernetes with Volcano")}
#: Options that have a field of their own.
_FIELDS = ("control_url", "in_cluster")


class ClusterForm(StyledForm):
    """What can be changed of a cluster later as well."""

    more = ("options", "binding")
    finding_fields: ClassVar[Mapping[str, str]] = {"namespace": "options"}

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
        label=_("Ninefold runs in this cluster (uses the service account of its pod)"),
        required=False,
    )
    control_url = forms.URLField(
        label=_("Ninefold URL for pods"),
        required=False,
        max_length=400,
        assume_scheme="https",
        widget=forms.TextInput(attrs={"placeholder": "https://ninefold.example.com"}),
        help_text=_(
            "URL to which jobs report. Default: the URL of this installation, which pods "
            "often cannot reach."
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
            'JSON: file locations on nodes and pod settings, such as {"namespace": '
            '"ninefold", "image": "registry.example.com/engine:1", "store": {"claim": '
            '"artifacts"}}.'
        ),
    )
    binding = forms.ChoiceField(
        label=_("Card assignment on a node"),
        choices=[
            (Cluster.BindingMode.NODE.value, _("device plugin of the cluster")),
            (Cluster.BindingMode.CARD.value, _("Ninefold")),
        ],
    )
    although_unfit = forms.BooleanField(label=_("Save despite failed checks"), required=False)

    @property
    def first_fields(self) -> list[forms.BoundField]:
        """Return the first fields, without the checkbox shown beside failed checks."""
        return [field for field in super().first_fields if field.name != "although_unfit"]

    def clean_options(self) -> dict[str, Any]:
        options = self.cleaned_data["options"] or {}
        if not isinstance(options, dict):
            raise forms.ValidationError(
                gettext('Options must be a JSON object, such as {"namespace": "ninefold"}.')
            )
        for name in _FIELDS:
            if name in options:
                raise forms.ValidationError(
                    gettext("%(name)s has its own field; remove it from the options.")
                    % {"name": name}
                )
        return options

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
        help_text=_("Lowercase Latin letters, digits and hyphens. Cannot be changed later."),
    )
    kind = forms.ChoiceField(label=_("Kind"))

    field_order = ("name", "kind", "kubeconfig", "in_cluster", "control_url", "options", "binding")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = selectors.remote_cluster_kinds()
        self.choice("kind").choices = [(kind, KINDS.get(kind, kind)) for kind in kinds]
        self.fields["kubeconfig"].help_text = _(
            "Kubeconfig of an account that can create namespaces and pods, with its token "
            "or certificate inline; exec plugins and file references are refused. Stored "
            "encrypted and never shown."
        )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not values.get("kubeconfig", "").strip() and not values.get("in_cluster"):
            self.add_error(
                "kubeconfig",
                gettext("Paste a kubeconfig, or select that Ninefold runs in this cluster."),
            )
        return values

    @property
    def registration(self) -> ClusterRegistration:
        """The cluster as the valid form describes it."""
        values = self.cleaned_data
        return ClusterRegistration(
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
            "Replaces the stored value. Empty: the stored value is kept."
        )

    @property
    def change(self) -> ClusterChange:
        """What the valid form changes."""
        values = self.cleaned_data
        return ClusterChange(
            options=self.chosen_options,
            binding=values["binding"],
            kubeconfig=values["kubeconfig"] if values["kubeconfig"].strip() else None,
        )


#: Without contact for longer, the status is stale.
STALE_AFTER = timedelta(seconds=90)


class ClusterFilter(FilterForm):
    lookups: ClassVar[Mapping[str, str]] = {"text": "name__icontains", "kind": "kind"}

    text = forms.CharField(label=_("Name"), max_length=40)
    kind = forms.ChoiceField(label=_("Kind"), choices=[("", _("all")), *KINDS.items()])


COLUMNS = (
    TableColumn(key="name", label=_("Name"), sort="name"),
    TableColumn(key="kind", label=_("Kind"), sort="kind"),
    TableColumn(
        key="health", label=_("Health"), csv=lambda row: cluster_health(row, at=timezone.now())
    ),
    TableColumn(key="version", label=_("Version")),
    TableColumn(
        key="nodes",
        label=_("Nodes"),
        sort="node_count",
        numeric=True,
        csv=lambda row: row.node_count,
    ),
    TableColumn(
        key="cards",
        label=_("Cards"),
        sort="card_count",
        numeric=True,
        csv=lambda row: row.card_count,
    ),
    TableColumn(key="contact", label=_("Last seen"), csv=lambda row: last_contact_at(row) or ""),
)
NODE_COLUMNS = (
    TableColumn(key="name", label=_("Name"), sort="name"),
    TableColumn(
        key="state", label=_("State"), csv=lambda row: "ready" if row.ready else "not ready"
    ),
    TableColumn(
        key="cards",
        label=_("Available cards"),
        sort="card_count",
        numeric=True,
        csv=lambda row: row.card_count,
    ),
    TableColumn(
        key="cpu", label=_("Cores"), sort="cpu", numeric=True, csv=lambda row: row.cpu // 1000
    ),
    TableColumn(key="memory", label=_("Memory"), sort="memory", numeric=True),
    TableColumn(key="last_seen_at", label=_("Last seen"), sort="last_seen_at"),
)


def last_contact_at(cluster: Cluster) -> datetime | None:
    """Return the time of the last contact, by inventory or watch."""
    known = [at for at in (cluster.last_seen_at, cluster.reachable_at) if at is not None]
    return max(known, default=None)


def cluster_health(cluster: Cluster, *, at: datetime) -> str:
    """Return the worst state as a key of ``STATE_BADGES``."""
    verdicts = {check.verdict for check in selectors.stored_cluster_checks(cluster)}
    contact = last_contact_at(cluster)
    if cluster.error:
        return "down"
    if CheckVerdict.FAILED in verdicts:
        return "failing"
    if contact is None:
        return "unseen"
    if at - contact > STALE_AFTER:
        return "late"
    return "degraded" if CheckVerdict.LACKING in verdicts else "well"


def _cluster_row(cluster: Cluster, *, at: datetime) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "kind": KINDS.get(cluster.kind, cluster.kind),
        "health": cluster_health(cluster, at=at),
        "contact": last_contact_at(cluster),
    }


@login_required
def cluster_list(request: AuthenticatedRequest) -> HttpResponseBase:
    rows = selectors.clusters_with_counts()
    table = ListTable(request, rows, columns=COLUMNS, filters=ClusterFilter, default_sort="name")
    if table.is_csv_request:
        return table.csv(filename="clusters.csv")
    at = timezone.now()
    context = {
        "table": table,
        "rows": [_cluster_row(row, at=at) for row in table.rows],
        "registers": selectors.is_fleet_operator(request.user),
    }
    return render(request, "console/clusters.html", context)


def _cluster_or_404(request: AuthenticatedRequest, uid: str) -> Cluster:
    return get_object_or_404(selectors.clusters_with_counts(), uid=uid)


@login_required
def cluster_detail(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """One cluster. Its options and checks are visible to operators of the fleet."""
    cluster_row = _cluster_or_404(request, uid)
    nodes = selectors.cluster_nodes(cluster_row)
    table = ListTable(request, nodes, columns=NODE_COLUMNS, default_sort="name")
    if table.is_csv_request:
        return table.csv(filename=f"{cluster_row.name}-nodes.csv")
    operates = selectors.is_fleet_operator(request.user)
    context = {
        **_cluster_row(cluster_row, at=timezone.now()),
        "table": table,
        "nodes": [(node, node.cpu / 1000) for node in table.rows],
        "stock": selectors.chip_counts(cluster_row),
        "operates": operates,
        "checks": _cluster_check_rows(selectors.stored_cluster_checks(cluster_row))
        if operates
        else [],
        "options": _option_rows(cluster_row) if operates else [],
        "control_url": selectors.control_plane_url(cluster_row),
        "changes": operates,
        "inspectable": selectors.supports_inspection(cluster_row),
    }
    return render(request, "console/cluster.html", context)


def _cluster_check_rows(checks: tuple[ClusterCheck, ...]) -> list[dict[str, str]]:
    """Return the checks, failed ones first."""
    order = (CheckVerdict.FAILED, CheckVerdict.LACKING, CheckVerdict.PASSED)
    return [
        {
            "name": check.name,
            "verdict": check.verdict.value,
            "message": render_reason(check.message),
            "remedy": render_reason(check.remedy),
            "manifest": check.manifest,
        }
        for check in sorted(checks, key=lambda check: order.index(check.verdict))
    ]


def _option_rows(cluster_row: Cluster) -> list[tuple[str, Any]]:
    return sorted(
        (name, value) for name, value in cluster_row.options.items() if name != "control_url"
    )


@sensitive_post_parameters("kubeconfig")
@login_required
@never_cache
def cluster_new(request: AuthenticatedRequest) -> HttpResponse:
    accounts.require_permission(request.user, Permission.OPERATE_FLEET, team=None)
    form = ClusterNewForm(submitted_data(request))
    context = {"form": form, "kinds": selectors.remote_cluster_kinds()}
    return _cluster_form_page(
        request,
        context,
        save=lambda: services.cluster_register(
            registration=form.registration,
            actor=request.user,
            although_unfit=form.cleaned_data["although_unfit"],
            at=timezone.now(),
        ),
        done=gettext("Cluster registered. Its nodes appear within one minute."),
    )


@sensitive_post_parameters("kubeconfig")
@login_required
@never_cache
def cluster_change(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    accounts.require_permission(request.user, Permission.OPERATE_FLEET, team=None)
    cluster_row = _cluster_or_404(request, uid)
    form = ClusterChangeForm(submitted_data(request), cluster=cluster_row)
    if cluster_row.kind not in selectors.REMOTE_KINDS:
        for name in ("kubeconfig", "in_cluster"):
            del form.fields[name]

    def save() -> Cluster:
        services.cluster_change(
            cluster=cluster_row,
            change=form.change,
            workloads_using=workloads_using_cluster,
            actor=request.user,
            although_unfit=form.cleaned_data["although_unfit"],
            at=timezone.now(),
        )
        return cluster_row

    context = {"form": form, "cluster": cluster_row}
    return _cluster_form_page(request, context, save=save, done=gettext("Cluster saved."))


def _cluster_form_page(
    request: AuthenticatedRequest,
    context: dict[str, Any],
    *,
    save: Callable[[], Cluster],
    done: str,
) -> HttpResponse:
    """The form, or the page of the cluster once the valid form has been saved."""
    try:
        saved = save_form(context["form"], save)
    except services.ClusterChecksFailed as failed:
        context |= {"checks": _cluster_check_rows(failed.checks), "unfit": True}
    else:
        if saved:
            messages.success(request, done)
            return redirect("cluster", saved.uid)
    return render_form(request, "console/cluster_form.html", **context)


_action = row_action_view(load=_cluster_or_404, page="cluster")


@_action
def cluster_check(request: AuthenticatedRequest, cluster_row: Cluster) -> str:
    checks = services.cluster_check(cluster=cluster_row, actor=request.user, at=timezone.now())
    failed = sum(check.verdict is CheckVerdict.FAILED for check in checks)
    if failed:
        return gettext("Checks finished: %(failed)d of %(total)d failed.") % {
            "failed": failed,
            "total": len(checks),
        }
    return gettext("Checks finished: all passed.")


@login_required
@require_POST
def cluster_remove(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Refused with what still uses it."""
    cluster_row = _cluster_or_404(request, uid)
    try:
        services.cluster_remove(
            cluster=cluster_row,
            workloads_using=workloads_using_cluster,
            actor=request.user,
            at=timezone.now(),
        )
    except (services.ClusterInUse, services.ClusterHasIsolatedNodes) as refusal:
        messages.error(request, render_reason(str(refusal)))
        return redirect("cluster", cluster_row.uid)
    messages.success(request, gettext("Cluster %(name)s removed.") % {"name": cluster_row.name})
    return redirect("clusters")
