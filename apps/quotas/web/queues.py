"""The queue tree, and the page of one queue: who waits, who runs, what it held, what was changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts.web.requests import SignedIn
from apps.quotas.models import QueueChange
from apps.quotas.selectors.bars import bars_of, drawn, fleet_bars
from apps.quotas.selectors.claims import (
    borrowing,
    claims_holding,
    claims_waiting,
    nodes_by_uid,
    places_in,
)
from apps.quotas.selectors.occupancy import Occupancy, Window, changes_of, occupancy_of
from apps.quotas.selectors.queues import Line, Tree, flat, queue_tree
from apps.quotas.selectors.trees import queue_names
from apps.quotas.web.listing import (
    ClaimFilter,
    RunningRow,
    WaitingRow,
    running_columns,
    waiting_columns,
)
from apps.quotas.web.words import name_of, outlook_brief
from controlplane.domain.queue_documents import changes, from_json
from controlplane.domain.quotas import TOTAL
from controlplane.web.pages import Tab, keyset
from controlplane.web.tables import Table


@login_required
def queues(request: SignedIn) -> HttpResponse:
    """``?chip=`` shows the bars of one chip alone."""
    tree = queue_tree(request.user)
    chip = request.GET.get("chip", "")
    chip = chip if chip in tree.chips else ""
    context = {
        "tree": tree,
        "lines": drawn(tree.tops, tree=tree, chip=chip),
        "fleet": fleet_bars(tree, chip=chip),
        "chips": tree.chips,
        "chip": chip,
    }
    return render(request, "quotas/queues.html", context)


def found_in(tree: Tree, uid: str) -> Line:
    """The queue of that uid, if its page opens to whoever looks.

    :raises Http404: if there is none.
    """
    for line in flat(tree.tops):
        if line.queue.uid == uid and line.opened:
            return line
    raise Http404


@login_required
def queue(request: SignedIn, uid: str) -> HttpResponseBase:
    """``?tab=`` is ``waiting``, ``running``, ``usage``, ``changes`` or ``below``."""
    tree = queue_tree(request.user)
    line = found_in(tree, uid)
    parts: Mapping[str, Callable[[SignedIn, Tree, Line], dict[str, Any]]] = {
        "waiting": _waiting,
        "running": _running,
        "usage": _usage,
        "changes": _changes,
        "below": _below,
    }
    tab = request.GET.get("tab", "waiting")
    if tab not in parts:
        raise Http404
    part = parts[tab](request, tree, line)
    table = part.get("table")
    if isinstance(table, Table) and table.wants_csv:
        return table.csv(filename=f"{line.queue}-{tab}.csv")
    context = {
        "queue": line.queue,
        "line": line,
        "above": _above(tree, line),
        "bars": bars_of(line.shares, tree=tree),
        "tabs": _tabs(line, tab),
        "may_change": tree.sight.company or line.queue.pk in tree.sight.managed,
        **part,
    }
    return render(request, f"quotas/queue_{tab}.html", context)


def _above(tree: Tree, line: Line) -> list[Line]:
    """Those above it, from the top down."""
    return [one for one in flat(tree.tops) if line in flat(one.below)]


def _tabs(line: Line, current: str) -> list[Tab]:
    words = {
        "waiting": (_("Waiting"), line.waiting),
        "running": (_("Running"), None),
        "usage": (_("Use over time"), None),
        "changes": (_("Changes"), None),
        "below": (_("Queues below"), len(line.below)),
    }
    if not line.below:
        del words["below"]
    page = reverse("queue", args=[line.queue.uid])
    return [
        Tab(label=word, href=f"{page}?tab={name}", current=name == current, count=count)
        for name, (word, count) in words.items()
    ]


def _waiting(request: SignedIn, tree: Tree, line: Line) -> dict[str, Any]:
    at = timezone.now()
    table = Table(
        request,
        claims_waiting(line.keys),
        columns=waiting_columns(tree.sight, at),
        filters=ClaimFilter(request.GET),
        default_sort="line",
    )
    places = places_in(line.keys)
    return {
        "table": table,
        "rows": [
            WaitingRow(
                claim=claim,
                place=places.get(claim.pk),
                name=name_of(claim, sight=tree.sight),
                named=tree.sight.names(claim),
                starts=outlook_brief(claim, now=at),
            )
            for claim in ([] if table.wants_csv else table.rows)
        ],
    }


def _running(request: SignedIn, tree: Tree, line: Line) -> dict[str, Any]:
    table = Table(
        request,
        claims_holding(line.keys),
        columns=running_columns(tree.sight),
        filters=ClaimFilter(request.GET),
        default_sort="-admitted_at",
    )
    shown = [] if table.wants_csv else table.rows
    nodes = nodes_by_uid(shown)
    beyond = borrowing(line.keys, _rights(line))
    return {
        "table": table,
        "rows": [
            RunningRow(
                claim=claim,
                name=name_of(claim, sight=tree.sight),
                named=tree.sight.names(claim),
                nodes=tuple(sorted({nodes.get(part["node"], "–") for part in claim.placement})),
                borrowed=claim.pk in beyond,
            )
            for claim in shown
        ],
    }


def _rights(line: Line) -> dict[tuple[int, str], int]:
    """What each queue there is guaranteed of each chip. Where only a total is stated, no one chip is borrowed."""
    rights = {}
    for one in flat([line]):
        for share in one.shares:
            right = share.standing.guaranteed if share.judged else share.standing.used
            rights[one.queue.pk, share.chip] = right
    return rights


def _usage(request: SignedIn, tree: Tree, line: Line) -> dict[str, Any]:
    chips = [share.chip for share in line.shares] or [TOTAL]
    chip = request.GET.get("chip", chips[0])
    asked = request.GET.get("window", Window.DAY)
    window = Window(asked) if asked in set(Window) else Window.DAY
    words = {
        Window.DAY: _("24 hours"),
        Window.WEEK: _("7 days"),
        Window.MONTH: _("30 days"),
    }
    return {
        "chip": chip if chip in chips else chips[0],
        "chips": chips,
        "window": window,
        "windows": [
            Tab(label=word, href=f"?tab=usage&chip={chip}&window={one}", current=one is window)
            for one, word in words.items()
        ],
    }


@login_required
def queue_usage(request: SignedIn, uid: str) -> HttpResponse:
    """Cards held over time, as a chart's JSON; ``?chip=`` and ``?window=``."""
    line = found_in(queue_tree(request.user), uid)
    chip, asked = request.GET.get("chip", TOTAL), request.GET.get("window", "")
    if asked not in set(Window):
        raise Http404
    found = occupancy_of(
        line.queue, below=line.keys, chip=chip, window=Window(asked), at=timezone.now()
    )
    return JsonResponse(_chart(found))


def _chart(found: Occupancy) -> dict[str, Any]:
    x = [start.isoformat() for start in found.starts]
    series: list[dict[str, Any]] = [
        {"name": _("held"), "kind": "line", "x": x, "y": list(found.used)}
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


def _changes(request: SignedIn, _tree: Tree, line: Line) -> dict[str, Any]:
    page = keyset(changes_of(line.queue), before=request.GET.get("before", ""))
    names = queue_names()
    return {"page": page, "rows": [_change(row, line.queue.uid, names) for row in page.rows]}


def _change(row: QueueChange, uid: str, names: Mapping[str, str]) -> dict[str, Any]:
    """One change, and what of it was about this queue."""
    before = {one: from_json(kept) for one, kept in row.before.items() if kept}
    after = {one: from_json(kept) for one, kept in row.after.items() if kept}
    told = [each.message for each in changes(before, after, names=names) if each.uid == uid]
    return {"change": row, "told": told}


def _below(_request: SignedIn, tree: Tree, line: Line) -> dict[str, Any]:
    return {"lines": drawn(line.below, tree=tree)}
