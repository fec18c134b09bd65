"""Pages of clusters: all of them, one, registering, changing, checking and removing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from apps.accounts.web.requests import SignedIn
from apps.fleet import selectors
from apps.fleet.models import Cluster
from apps.fleet.services import clusters as services
from apps.fleet.web.cluster_forms import KINDS, ClusterChangeForm, ClusterForm, ClusterNewForm
from controlplane.domain.permissions import Permission
from controlplane.ports.clusters import Check, Verdict
from controlplane.web.pages import acting
from controlplane.web.sentences import said
from controlplane.web.tables import Column, FilterForm, Table

#: Longer without a look at it, and nobody knows how it does.
SILENCE = timedelta(seconds=90)
#: Users of a cluster that a refusal names.
MOST_NAMED = 5


class ClusterFilter(FilterForm):
    lookups: ClassVar[Mapping[str, str]] = {"text": "name__icontains", "kind": "kind"}

    text = forms.CharField(label=_("Name"), max_length=40)
    kind = forms.ChoiceField(label=_("Kind"), choices=[("", _("all")), *KINDS.items()])


COLUMNS = (
    Column(key="name", label=_("Name"), sort="name"),
    Column(key="kind", label=_("Kind"), sort="kind"),
    Column(key="health", label=_("Health"), csv=lambda row: health_of(row, at=timezone.now())),
    Column(key="version", label=_("Version")),
    Column(
        key="nodes",
        label=_("Nodes"),
        sort="node_count",
        numeric=True,
        csv=lambda row: row.node_count,
    ),
    Column(
        key="cards",
        label=_("Cards"),
        sort="card_count",
        numeric=True,
        csv=lambda row: row.card_count,
    ),
    Column(key="contact", label=_("Last contact"), csv=lambda row: contact_of(row) or ""),
)
NODE_COLUMNS = (
    Column(key="name", label=_("Name"), sort="name"),
    Column(key="state", label=_("State"), csv=lambda row: "ready" if row.ready else "not ready"),
    Column(
        key="cards",
        label=_("Cards usable"),
        sort="card_count",
        numeric=True,
        csv=lambda row: row.card_count,
    ),
    Column(key="cpu", label=_("Cores"), sort="cpu", numeric=True, csv=lambda row: row.cpu // 1000),
    Column(key="memory", label=_("Memory"), sort="memory", numeric=True),
    Column(key="last_seen_at", label=_("Last seen"), sort="last_seen_at"),
)


def contact_of(cluster: Cluster) -> datetime | None:
    """When it was last heard of, by whoever asked."""
    known = [at for at in (cluster.last_seen_at, cluster.reachable_at) if at is not None]
    return max(known, default=None)


def health_of(cluster: Cluster, *, at: datetime) -> str:
    """A state of the common table of looks; what is worst counts."""
    verdicts = {check.verdict for check in selectors.checks_of(cluster)}
    contact = contact_of(cluster)
    if cluster.trouble:
        return "down"
    if Verdict.FAILED in verdicts:
        return "failing"
    if contact is None:
        return "unseen"
    if at - contact > SILENCE:
        return "late"
    return "degraded" if Verdict.LACKING in verdicts else "well"


def _row(cluster: Cluster, *, at: datetime) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "kind": KINDS.get(cluster.kind, cluster.kind),
        "health": health_of(cluster, at=at),
        "contact": contact_of(cluster),
    }


@login_required
def clusters(request: SignedIn) -> HttpResponseBase:
    rows = selectors.clusters()
    table = Table(request, rows, columns=COLUMNS, filters=ClusterFilter, default_sort="name")
    if table.wants_csv:
        return table.csv(filename="clusters.csv")
    at = timezone.now()
    context = {
        "table": table,
        "rows": [_row(row, at=at) for row in table.rows],
        "registers": selectors.operates(request.user),
    }
    return render(request, "fleet/clusters.html", context)


def _found(request: SignedIn, uid: str) -> Cluster:
    return get_object_or_404(selectors.clusters(), uid=uid)


@login_required
def cluster(request: SignedIn, uid: str) -> HttpResponseBase:
    """One cluster. Its options and checks are for whoever operates the fleet."""
    found = _found(request, uid)
    nodes = selectors.nodes_of(found)
    table = Table(request, nodes, columns=NODE_COLUMNS, default_sort="name")
    if table.wants_csv:
        return table.csv(filename=f"{found.name}-nodes.csv")
    operates = selectors.operates(request.user)
    context = {
        **_row(found, at=timezone.now()),
        "table": table,
        "nodes": [(node, node.cpu / 1000) for node in table.rows],
        "stock": selectors.stock_of(found),
        "operates": operates,
        "checks": _checks(selectors.checks_of(found)) if operates else [],
        "options": _options(found) if operates else [],
        "control_url": selectors.control_url(found),
        "changes": operates,
        "inspectable": selectors.inspectable(found),
    }
    return render(request, "fleet/cluster.html", context)


def _checks(checks: tuple[Check, ...]) -> list[dict[str, str]]:
    """What needs somebody first."""
    order = (Verdict.FAILED, Verdict.LACKING, Verdict.PASSED)
    return [
        {
            "name": check.name,
            "verdict": check.verdict.value,
            "message": said(check.message),
            "remedy": said(check.remedy),
        }
        for check in sorted(checks, key=lambda check: order.index(check.verdict))
    ]


def _options(found: Cluster) -> list[tuple[str, Any]]:
    return sorted((name, value) for name, value in found.options.items() if name != "control_url")


@sensitive_post_parameters("kubeconfig")
@login_required
@never_cache
def cluster_new(request: SignedIn) -> HttpResponse:
    accounts.require(request.user, Permission.OPERATE_FLEET, team=None)
    bound = request.method == "POST"
    form = ClusterNewForm(request.POST if bound else None)
    context: dict[str, Any] = {"form": form, "kinds": selectors.remote_kinds()}
    if bound and form.is_valid():
        try:
            made = services.cluster_register(
                registration=form.registration,
                actor=request.user,
                although_unfit=form.cleaned_data["although_unfit"],
                at=timezone.now(),
            )
        except (services.ClusterRefused, services.ClusterUnfit) as refusal:
            context |= _refused(form, refusal)
        else:
            messages.success(
                request, gettext("The cluster is registered; its nodes appear within a minute.")
            )
            return redirect("cluster", made.uid)
    return render(request, "fleet/cluster_form.html", context, status=422 if bound else 200)


@sensitive_post_parameters("kubeconfig")
@login_required
@never_cache
def cluster_change(request: SignedIn, uid: str) -> HttpResponse:
    accounts.require(request.user, Permission.OPERATE_FLEET, team=None)
    found = _found(request, uid)
    bound = request.method == "POST"
    form = ClusterChangeForm(request.POST if bound else None, cluster=found)
    if found.kind not in selectors.REMOTE_KINDS:
        for name in ("kubeconfig", "in_cluster"):
            del form.fields[name]
    context: dict[str, Any] = {"form": form, "cluster": found}
    if bound and form.is_valid():
        try:
            services.cluster_change(
                cluster=found,
                change=form.change,
                actor=request.user,
                although_unfit=form.cleaned_data["although_unfit"],
                at=timezone.now(),
            )
        except (services.ClusterRefused, services.ClusterUnfit) as refusal:
            context |= _refused(form, refusal)
        else:
            messages.success(request, gettext("The cluster was changed."))
            return redirect("cluster", found.uid)
    return render(request, "fleet/cluster_form.html", context, status=422 if bound else 200)


def _refused(
    form: ClusterForm, refusal: services.ClusterRefused | services.ClusterUnfit
) -> dict[str, Any]:
    """What the form's page shows of it: an error beside its field, or the checks."""
    if isinstance(refusal, services.ClusterUnfit):
        return {"checks": _checks(refusal.checks), "unfit": True}
    form.add_error(refusal.field if refusal.field in form.fields else None, said(str(refusal)))
    return {}


_act = acting(found=_found, page="cluster")


@_act
def cluster_check(request: SignedIn, found: Cluster) -> str:
    checks = services.cluster_check(cluster=found, actor=request.user, at=timezone.now())
    failed = sum(check.verdict is Verdict.FAILED for check in checks)
    if failed:
        return gettext("Checked: %(failed)d of %(total)d checks failed.") % {
            "failed": failed,
            "total": len(checks),
        }
    return gettext("Checked: nothing failed.")


def _in_use(found: Cluster, occupants: tuple[str, ...]) -> str:
    """Who uses it, each in the reader's language."""
    return gettext("%(name)s is still in use by %(who)s; stop or move that first.") % {
        "name": found.name,
        "who": _first_of([said(one) for one in occupants]),
    }


def _marked(found: Cluster, nodes: tuple[str, ...]) -> str:
    return gettext(
        "%(name)s bears our mark on %(nodes)s: give these nodes back first, and wait until their mark is off."
    ) % {"name": found.name, "nodes": _first_of(nodes)}


def _first_of(names: Sequence[str]) -> str:
    named = list(names[:MOST_NAMED])
    if more := len(names) - len(named):
        named.append(gettext("and %(count)d more") % {"count": more})
    return ", ".join(named)


@login_required
@require_POST
def cluster_remove(request: SignedIn, uid: str) -> HttpResponse:
    """Refused with what still uses it."""
    found = _found(request, uid)
    try:
        services.cluster_remove(cluster=found, actor=request.user, at=timezone.now())
    except services.ClusterOccupied as refusal:
        messages.error(request, _in_use(found, refusal.occupants))
        return redirect("cluster", found.uid)
    except services.ClusterMarked as refusal:
        messages.error(request, _marked(found, refusal.nodes))
        return redirect("cluster", found.uid)
    messages.success(request, gettext("The cluster %(name)s was removed.") % {"name": found.name})
    return redirect("clusters")
