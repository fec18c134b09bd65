"""Pages of the queue tree and of a queue: pending and running claims, usage, changes, queues below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.quotas.models import Claim, QueueChange
from apps.quotas.selectors.allocations import (
    AllocationWindow,
    QueueOccupancy,
    queue_changes,
    queue_occupancy,
)
from apps.quotas.selectors.claims import (
    borrowing_claim_ids,
    claim_node_names,
    claims_allocated,
    claims_pending,
    queue_positions,
)
from apps.quotas.selectors.queue_trees import queue_names, visible_change_differences
from apps.quotas.selectors.queues import (
    QueueEntry,
    QueueVisibility,
    QuotaTree,
    flatten_queue_entries,
    queue_tree,
)
from apps.quotas.selectors.quota_bars import fleet_bars, queue_bars, quota_bars
from apps.quotas.web.claims import claim_label, format_start_short
from controlplane.domain.quotas.queues import TOTAL
from controlplane.web.pages import PageTab, keyset_page
from controlplane.web.reasons import render_reason
from controlplane.web.tables import FilterForm, ListTable, TableColumn


class ClaimFilter(FilterForm):
    team = forms.CharField(label=lazy("Team"), required=False)
    chip = forms.CharField(label=lazy("Chip"), required=False)
    lookups: ClassVar = {"team": "team__name__icontains", "chip": "chips__icontains"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClaimRow:
    claim: Claim
    #: Position in its queue, from 1; None if it is no longer pending.
    place: int | None
    name: str
    #: Whether the reader may see the name of the workload.
    named: bool
    #: Predicted start; empty without a forecast.
    starts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningClaimRow:
    claim: Claim
    name: str
    named: bool
    #: Names of its nodes.
    nodes: tuple[str, ...]
    #: It uses cards beyond its queue's guarantee.
    borrowed: bool


def pending_columns(visibility: QueueVisibility, at: datetime) -> tuple[TableColumn, ...]:
    return (
        TableColumn(key="line", label=lazy("Position"), sort="line", csv=lambda row: row.line),
        TableColumn(
            key="work",
            label=lazy("Workload"),
            csv=lambda row: claim_label(row, visibility=visibility),
        ),
        TableColumn(
            key="cards", label=lazy("Cards"), sort="card_count", numeric=True, csv=_card_count
        ),
        TableColumn(key="chips", label=lazy("Chips"), csv=lambda row: " / ".join(row.chips)),
        TableColumn(
            key="team", label=lazy("Team"), sort="team__name", csv=lambda row: row.team.name
        ),
        TableColumn(key="since", label=lazy("Pending since"), sort="since", csv=_pending_since),
        TableColumn(
            key="why",
            label=lazy("Pending reason"),
            csv=lambda row: render_reason(row.explanation),
        ),
        TableColumn(
            key="starts",
            label=lazy("Expected start"),
            csv=lambda row: format_start_short(row, now=at) or "–",
        ),
    )


def running_columns(visibility: QueueVisibility) -> tuple[TableColumn, ...]:
    return (
        TableColumn(
            key="work",
            label=lazy("Workload"),
            csv=lambda row: claim_label(row, visibility=visibility),
        ),
        TableColumn(
            key="cards", label=lazy("Cards"), sort="card_count", numeric=True, csv=_card_count
        ),
        TableColumn(key="chip", label=lazy("Chip"), sort="chip"),
        TableColumn(key="where", label=lazy("Where"), csv=lambda row: len(row.placement)),
        TableColumn(
            key="team", label=lazy("Team"), sort="team__name", csv=lambda row: row.team.name
        ),
        TableColumn(key="admitted_at", label=lazy("Since"), sort="admitted_at", csv=_admitted_at),
        TableColumn(key="progress", label=lazy("Progress"), sort="progress", numeric=True),
        TableColumn(
            key="saved",
            label=lazy("Last checkpoint"),
            sort="checkpointed_at",
            csv=_last_checkpoint_at,
        ),
    )


def _card_count(row: Claim) -> int:
    return row.card_count


def _pending_since(row: Claim) -> str:
    return (row.in_line_since or row.created_at).isoformat()


def _admitted_at(row: Claim) -> str:
    return row.admitted_at.isoformat() if row.admitted_at else ""


def _last_checkpoint_at(row: Claim) -> str:
    return row.checkpointed_at.isoformat() if row.checkpointed_at else ""


@login_required
def queues(request: AuthenticatedRequest) -> HttpResponse:
    """The queue tree; ``?chip=`` shows only the bars of one chip."""
    tree = queue_tree(request.user)
    chip = request.GET.get("chip", "")
    chip = chip if chip in tree.chips else ""
    context = {
        "tree": tree,
        "entries": queue_bars(tree.roots, tree=tree, chip=chip),
        "fleet": fleet_bars(tree, chip=chip),
        "chips": tree.chips,
        "chip": chip,
    }
    return render(request, "quotas/queues.html", context)


def queue_entry_or_404(tree: QuotaTree, uid: str) -> QueueEntry:
    """The queue of that uid, if the user may open its page.

    :raises Http404: if there is none.
    """
    for entry in flatten_queue_entries(tree.roots):
        if entry.queue.uid == uid and entry.can_open:
            return entry
    raise Http404


@login_required
def queue(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """A queue; ``?tab=`` is ``waiting``, ``running``, ``usage``, ``changes`` or ``below``."""
    tree = queue_tree(request.user)
    entry = queue_entry_or_404(tree, uid)
    parts: Mapping[str, Callable[[AuthenticatedRequest, QuotaTree, QueueEntry], dict[str, Any]]] = {
        "waiting": _pending_context,
        "running": _running_context,
        "usage": _usage_context,
        "changes": _changes_context,
        "below": _subqueues_context,
    }
    tab = request.GET.get("tab", "waiting")
    if tab not in parts:
        raise Http404
    part = parts[tab](request, tree, entry)
    table = part.get("table")
    if isinstance(table, ListTable) and table.is_csv_request:
        return table.csv(filename=f"{entry.queue}-{tab}.csv")
    context = {
        "queue": entry.queue,
        "entry": entry,
        "above": _ancestor_entries(tree, entry),
        "bars": quota_bars(entry.shares, tree=tree),
        "tabs": _queue_tabs(entry, tab),
        "may_change": tree.visibility.everything or entry.queue.pk in tree.visibility.managed,
        **part,
    }
    return render(request, f"quotas/queue_{tab}.html", context)


def _ancestor_entries(tree: QuotaTree, entry: QueueEntry) -> list[QueueEntry]:
    """The queues above it, from the top down."""
    return [
        one
        for one in flatten_queue_entries(tree.roots)
        if entry in flatten_queue_entries(one.below)
    ]


def _queue_tabs(entry: QueueEntry, current: str) -> list[PageTab]:
    labels = {
        "waiting": (_("Pending"), entry.waiting),
        "running": (_("Running"), None),
        "usage": (_("Usage over time"), None),
        "changes": (_("Changes"), None),
        "below": (_("Child queues"), len(entry.below)),
    }
    if not entry.below:
        del labels["below"]
    page = reverse("queue", args=[entry.queue.uid])
    return [
        PageTab(label=label, href=f"{page}?tab={name}", current=name == current, count=count)
        for name, (label, count) in labels.items()
    ]


def _pending_context(
    request: AuthenticatedRequest, tree: QuotaTree, entry: QueueEntry
) -> dict[str, Any]:
    at = timezone.now()
    table = ListTable(
        request,
        claims_pending(entry.subtree_ids),
        columns=pending_columns(tree.visibility, at),
        filters=ClaimFilter(request.GET),
        default_sort="line",
    )
    places = queue_positions(entry.subtree_ids)
    return {
        "table": table,
        "rows": [
            PendingClaimRow(
                claim=claim,
                place=places.get(claim.pk),
                name=claim_label(claim, visibility=tree.visibility),
                named=tree.visibility.can_name(claim),
                starts=format_start_short(claim, now=at),
            )
            for claim in ([] if table.is_csv_request else table.rows)
        ],
    }


def _running_context(
    request: AuthenticatedRequest, tree: QuotaTree, entry: QueueEntry
) -> dict[str, Any]:
    table = ListTable(
        request,
        claims_allocated(entry.subtree_ids),
        columns=running_columns(tree.visibility),
        filters=ClaimFilter(request.GET),
        default_sort="-admitted_at",
    )
    shown = [] if table.is_csv_request else table.rows
    nodes = claim_node_names(shown)
    beyond = borrowing_claim_ids(entry.subtree_ids, _guarantees_by_chip(entry))
    return {
        "table": table,
        "rows": [
            RunningClaimRow(
                claim=claim,
                name=claim_label(claim, visibility=tree.visibility),
                named=tree.visibility.can_name(claim),
                nodes=tuple(sorted({nodes.get(part["node"], "–") for part in claim.placement})),
                borrowed=claim.pk in beyond,
            )
            for claim in shown
        ],
    }


def _guarantees_by_chip(entry: QueueEntry) -> dict[tuple[int, str], int]:
    """Guarantee of each queue there by chip. With a guarantee for all chips only, no single chip is borrowed."""
    rights = {}
    for one in flatten_queue_entries([entry]):
        for share in one.shares:
            right = share.standing.guaranteed if share.borrowing_known else share.standing.used
            rights[one.queue.pk, share.chip] = right
    return rights


def _usage_context(
    request: AuthenticatedRequest, tree: QuotaTree, entry: QueueEntry
) -> dict[str, Any]:
    chips = [share.chip for share in entry.shares] or [TOTAL]
    chip = request.GET.get("chip", chips[0])
    requested = request.GET.get("window", AllocationWindow.DAY)
    window = (
        AllocationWindow(requested) if requested in set(AllocationWindow) else AllocationWindow.DAY
    )
    labels = {
        AllocationWindow.DAY: _("24 hours"),
        AllocationWindow.WEEK: _("7 days"),
        AllocationWindow.MONTH: _("30 days"),
    }
    return {
        "chip": chip if chip in chips else chips[0],
        "chips": chips,
        "window": window,
        "windows": [
            PageTab(label=label, href=f"?tab=usage&chip={chip}&window={one}", current=one is window)
            for one, label in labels.items()
        ],
    }


@login_required
def queue_usage(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Allocated cards over time as JSON for a chart; ``?chip=`` and ``?window=``."""
    entry = queue_entry_or_404(queue_tree(request.user), uid)
    chip, requested = request.GET.get("chip", TOTAL), request.GET.get("window", "")
    if requested not in set(AllocationWindow):
        raise Http404
    found = queue_occupancy(
        entry.queue,
        below=entry.subtree_ids,
        chip=chip,
        window=AllocationWindow(requested),
        at=timezone.now(),
    )
    return JsonResponse(_occupancy_chart(found))


def _occupancy_chart(found: QueueOccupancy) -> dict[str, Any]:
    x = [start.isoformat() for start in found.starts]
    series: list[dict[str, Any]] = [
        {"name": _("allocated"), "kind": "line", "x": x, "y": list(found.used)}
    ]
    if any(found.guaranteed):
        guaranteed = list(found.guaranteed)
        series.append(
            {"name": _("guaranteed"), "kind": "line", "dash": "dashed", "x": x, "y": guaranteed}
        )
    if any(cap is not None for cap in found.cap):
        cap = list(found.cap)
        series.append({"name": _("cap"), "kind": "line", "dash": "dotted", "x": x, "y": cap})
    return {
        "x": {"label": _("time"), "type": "date"},
        "y": {"label": _("cards"), "unit": ""},
        "series": series,
        "ended": True,
    }


def _changes_context(
    request: AuthenticatedRequest, _tree: QuotaTree, entry: QueueEntry
) -> dict[str, Any]:
    page = keyset_page(queue_changes(entry.queue), before=request.GET.get("before", ""))
    names = queue_names()
    return {"page": page, "rows": [_change_row(row, entry.queue.uid, names) for row in page.rows]}


def _change_row(row: QueueChange, uid: str, names: Mapping[str, str]) -> dict[str, Any]:
    """A change, with its differences for this queue."""
    differences = visible_change_differences(row, names=names)
    messages = [each.message for each in differences if each.uid == uid]
    return {"change": row, "messages": messages}


def _subqueues_context(
    _request: AuthenticatedRequest, tree: QuotaTree, entry: QueueEntry
) -> dict[str, Any]:
    return {"entries": queue_bars(entry.below, tree=tree)}
