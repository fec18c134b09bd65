"""The list of faults, their marks in charts of jobs, and isolation and release of cards and nodes.

Deletion of a metric source and revocation of an agent token end the faults that they reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Node
from apps.fleet.selectors import require_fleet_operator
from apps.jobs import selectors as jobs
from apps.monitoring.models import Fault, Isolation
from apps.monitoring.selectors.faults import (
    FaultLocation,
    JobFault,
    faults_newest_first,
    isolations_by_fault,
    isolations_by_location,
    job_faults,
)
from apps.monitoring.selectors.fleet_counts import chip_pools, sum_card_counts
from apps.monitoring.selectors.suppressed_actions import suppressed_counts
from apps.monitoring.services import metric_ingestion
from apps.monitoring.services.faults import faults_acknowledge
from apps.monitoring.services.isolations import (
    IsolationRefused,
    burn_ins_request,
    isolations_release,
    isolations_request,
)
from apps.monitoring.web.fault_labels import ORIGINS, displayed_fault_row, fault_mark_text
from apps.telemetry.selectors import metric_sources_visible, node_tokens_visible
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.health.faults import FaultLevel
from controlplane.web.pages import row_action_view, run_action
from controlplane.web.tables import BulkAction, FilterForm, ListTable, Row, TableColumn

#: Maximum number of rows of a bulk action.
MOST_AT_ONCE = 500
#: Newest attempts and faults; a chart of a job shows as many attempts.
_MAX_ATTEMPTS = 3
_MAX_FAULTS = 20


class FaultFilter(FilterForm):
    lookups: ClassVar[Mapping[str, str]] = {
        "level": "level",
        "origin": "origin",
        "chip": "card__chip",
        "cluster": "node__cluster__name",
    }

    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        choices=[
            ("", gettext_lazy("open")),
            ("new", gettext_lazy("open fault, not acknowledged")),
            ("acknowledged", gettext_lazy("open fault, acknowledged")),
            ("over", pgettext_lazy("fault", "resolved")),
            ("all", gettext_lazy("all")),
        ],
    )
    level = forms.ChoiceField(
        label=gettext_lazy("Level"),
        choices=[("", gettext_lazy("all")), *((one.value, f"L{one.value}") for one in FaultLevel)],
    )
    text = forms.CharField(label=gettext_lazy("Code or node"), max_length=120)
    chip = forms.ChoiceField(label=gettext_lazy("Chip"))
    cluster = forms.ChoiceField(label=gettext_lazy("Cluster"))
    origin = forms.ChoiceField(
        label=gettext_lazy("Source"),
        choices=[("", gettext_lazy("all")), *((one.value, word) for one, word in ORIGINS.items())],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        clusters = fleet.clusters_with_counts().order_by("name").values_list("name", flat=True)
        for name, values in (("chip", sorted(fleet.cards_by_chip())), ("cluster", clusters)):
            self.choice(name).choices = [
                ("", gettext_lazy("all")),
                *((value, value) for value in values),
            ]

    def apply(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        narrowed = super().apply(rows).filter(_STATES[self.chosen("state") or ""])
        if text := self.chosen("text"):
            narrowed = narrowed.filter(Q(code__icontains=text) | Q(node__name__icontains=text))
        return narrowed


_STATES: Mapping[str, Q] = {
    "": Q(ended_at=None),
    "new": Q(ended_at=None, acknowledged_at=None),
    "acknowledged": Q(ended_at=None, acknowledged_at__isnull=False),
    "over": Q(ended_at__isnull=False),
    "all": Q(),
}
COLUMNS = (
    TableColumn(
        key="level", label=gettext_lazy("Level"), sort="level", csv=lambda row: f"L{row.level}"
    ),
    TableColumn(key="what", label=gettext_lazy("Fault and cause"), csv=lambda row: row.code),
    TableColumn(
        key="where", label=gettext_lazy("Location"), csv=lambda row: str(row.card or row.node)
    ),
    TableColumn(
        key="state",
        label=gettext_lazy("State"),
        csv=lambda row: displayed_fault_row(row, operates=False).state.removeprefix("fault_"),
    ),
    TableColumn(key="began_at", label=gettext_lazy("Since"), sort="began_at"),
    TableColumn(key="count", label=gettext_lazy("Occurrences"), sort="count", numeric=True),
)


def _bulk_actions() -> tuple[BulkAction, ...]:
    return (
        BulkAction(
            name="acknowledge",
            label=_("Acknowledge"),
            href=reverse("faults-acknowledge"),
            warning=_("The faults stay in the list until resolved, marked as acknowledged by you."),
            picture="check",
            style="btn-primary",
            note=_("Note (optional)"),
        ),
        BulkAction(
            name="isolate",
            label=_("Isolate"),
            href=reverse("faults-isolate"),
            warning=_(
                "Isolates the cards, or the whole node for node faults. Running workloads save "
                "a checkpoint, stop and restart elsewhere."
            ),
            picture="shield",
            note=_("Reason"),
        ),
        BulkAction(
            name="release",
            label=_("Return to service"),
            href=reverse("faults-release"),
            warning=_(
                "Isolated cards and nodes are schedulable again immediately, without a burn-in."
            ),
            picture="arrow-back-up",
            style="btn-primary",
            note=_("Reason"),
        ),
    )


@login_required
def faults(request: AuthenticatedRequest) -> HttpResponseBase:
    """Open faults, most severe first; filters, order and page are in the URL."""
    operates = fleet.is_fleet_operator(request.user)
    table = ListTable(
        request,
        faults_newest_first(),
        columns=COLUMNS,
        filters=FaultFilter,
        default_sort="-level",
        bulk=_bulk_actions() if operates else (),
    )
    if table.is_csv_request:
        return table.csv(filename="faults.csv")
    isolations = isolations_by_fault(table.rows)
    quiet = not table.rows and not table.filtered
    context = {
        "table": table,
        "rows": [
            displayed_fault_row(row, operates=operates, isolation=isolations.get(row.pk))
            for row in table.rows
        ],
        "operates": operates,
        "held": suppressed_counts(),
        # Cards may be isolated without a fault: an empty list does not mean that all cards are usable.
        "counts": sum_card_counts(pool.counts for pool in chip_pools(at=timezone.now()))
        if quiet
        else None,
    }
    return render(request, "monitoring/faults.html", context)


def _selected_uids(request: AuthenticatedRequest) -> list[str]:
    return request.POST.getlist("uid")[:MOST_AT_ONCE]


def _submitted_note(request: AuthenticatedRequest, action: str) -> str:
    return request.POST.get(f"note_{action}", "").strip()


_REFUSALS = (IllegalTransition, IsolationRefused)


@login_required
@require_POST
def selected_faults_acknowledge(request: AuthenticatedRequest) -> HttpResponse:
    def action() -> str:
        read = faults_acknowledge(
            uids=_selected_uids(request),
            note=_submitted_note(request, "acknowledge"),
            actor=request.user,
            at=timezone.now(),
        )
        count = len(read)
        message = ngettext("%(count)d fault acknowledged.", "%(count)d faults acknowledged.", count)
        return message % {"count": count}

    return run_action(request, action, back=reverse("faults"), refusals=_REFUSALS)


@login_required
@require_POST
def selected_faults_isolate(request: AuthenticatedRequest) -> HttpResponse:
    def action() -> str:
        chosen = _find_faults(_selected_uids(request))
        begun = isolations_request(
            nodes=sorted({one.node.uid for one in chosen if one.card is None}),
            cards=sorted({one.card.uid for one in chosen if one.card is not None}),
            reason=_submitted_note(request, "isolate"),
            actor=request.user,
            at=timezone.now(),
        )
        return isolation_count_message(len(begun))

    return run_action(request, action, back=reverse("faults"), refusals=_REFUSALS)


@login_required
@require_POST
def selected_faults_release(request: AuthenticatedRequest) -> HttpResponse:
    def action() -> str:
        chosen = _find_faults(_selected_uids(request))
        ended = isolations_release(
            uids=sorted({one.uid for one in isolations_by_fault(chosen).values()}),
            reason=_submitted_note(request, "release"),
            actor=request.user,
            at=timezone.now(),
        )
        return release_count_message(ended)

    return run_action(request, action, back=reverse("faults"), refusals=_REFUSALS)


def _find_faults(uids: Sequence[str]) -> list[Fault]:
    return list(faults_newest_first().filter(uid__in=uids))


def isolation_count_message(count: int) -> str:
    """Message after that many isolations."""
    if not count:
        return _("No change: all selected cards and nodes were already isolated.")
    message = ngettext(
        "%(count)d card or node isolated. Running workloads save a checkpoint and stop.",
        "%(count)d cards or nodes isolated. Running workloads save a checkpoint and stop.",
        count,
    )
    return message % {"count": count}


def release_count_message(ended: Sequence[Isolation]) -> str:
    """Message after that many releases."""
    if not ended:
        return _("No change: none of the selected cards and nodes were isolated.")
    message = ngettext(
        "%(count)d card or node returned to service.",
        "%(count)d cards or nodes returned to service.",
        len(ended),
    )
    return message % {"count": len(ended)}


def _find_card(request: HttpRequest, uid: str) -> Card:
    del request
    return get_object_or_404(fleet.cards_with_node().select_related("node__cluster"), uid=uid)


def _find_node(uid: str, name: str) -> Node:
    return get_object_or_404(fleet.nodes_with_cluster(), cluster__uid=uid, name=name)


def _submitted_reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()


def _open_isolation_uids_of_target(node: int, card: int | None) -> list[str]:
    """Uids of open isolations of exactly that target."""
    found = isolations_by_location({node}).get(FaultLocation(node, card))
    return [found.uid] if found else []


_card_action = row_action_view(load=_find_card, page="card", refusals=_REFUSALS)


@_card_action
def card_isolate(request: AuthenticatedRequest, card: Card) -> str:
    reason, at = _submitted_reason(request), timezone.now()
    begun = isolations_request(cards=[card.uid], reason=reason, actor=request.user, at=at)
    if any(row.card_id is None for row in begun):
        return _("Node isolated. Running workloads save a checkpoint and stop.")
    return isolation_count_message(len(begun))


@_card_action
def card_release(request: AuthenticatedRequest, card: Card) -> str:
    return _release_isolations(request, _open_isolation_uids_of_target(card.node_id, card.pk))


@_card_action
def card_burn_in_request(request: AuthenticatedRequest, card: Card) -> str:
    uids = _open_isolation_uids_of_target(card.node_id, card.pk)
    if not burn_ins_request(uids=uids, actor=request.user, at=timezone.now()):
        return _(
            "To start a burn-in, the card or node must be isolated and have no running burn-in."
        )
    return _("Burn-in scheduled. It starts when the running workloads have stopped.")


@login_required
@require_POST
def node_isolate(request: AuthenticatedRequest, uid: str, name: str) -> HttpResponse:
    node = _find_node(uid, name)

    def action() -> str:
        reason, at = _submitted_reason(request), timezone.now()
        begun = isolations_request(nodes=[node.uid], reason=reason, actor=request.user, at=at)
        return isolation_count_message(len(begun))

    back = reverse("node", args=[uid, name])
    return run_action(request, action, back=back, refusals=_REFUSALS)


@login_required
@require_POST
def node_release(request: AuthenticatedRequest, uid: str, name: str) -> HttpResponse:
    uids = _open_isolation_uids_of_target(_find_node(uid, name).pk, None)
    back = reverse("node", args=[uid, name])
    return run_action(
        request, lambda: _release_isolations(request, uids), back=back, refusals=_REFUSALS
    )


def _release_isolations(request: AuthenticatedRequest, uids: list[str]) -> str:
    ended = isolations_release(
        uids=uids, reason=_submitted_reason(request), actor=request.user, at=timezone.now()
    )
    return release_count_message(ended)


@login_required
def job_fault_marks(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """``{"marks": [...]}`` at steps, as ``static/js/charts.js`` draws them; one mark for all faults of a step."""
    job = get_object_or_404(jobs.jobs_visible(request.user), uid=uid)
    operates = fleet.is_fleet_operator(request.user)
    found = job_faults(job, attempts=_MAX_ATTEMPTS, limit=_MAX_FAULTS, at=timezone.now())
    by_step: dict[int, list[JobFault]] = {}
    for one in found:
        by_step.setdefault(one.step, []).append(one)
    marks: list[dict[str, Any]] = [
        {
            "x": step,
            "label": ", ".join(dict.fromkeys(one.fault.code for one in faults)),
            "detail": "\n".join(fault_mark_text(one.fault, operates=operates) for one in faults),
            "kind": "fault",
        }
        for step, faults in by_step.items()
    ]
    return JsonResponse({"marks": marks})


@login_required
@require_POST
def metric_source_delete_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_fleet_operator(request.user)
    found = get_object_or_404(metric_sources_visible(request.user), uid=uid)
    metric_ingestion.metric_source_delete(source=found, actor=request.user, at=timezone.now())
    messages.success(request, _("Metric source %(name)s deleted.") % {"name": found.name})
    return redirect("sources")


@login_required
@require_POST
def agent_token_revoke_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_fleet_operator(request.user)
    token = get_object_or_404(node_tokens_visible(request.user), uid=uid)
    metric_ingestion.agent_token_revoke(token=token, actor=request.user, at=timezone.now())
    message = _("Token of %(node)s revoked. Metrics sent with it are refused.")
    messages.success(request, message % {"node": token.node})
    return redirect("agents")
