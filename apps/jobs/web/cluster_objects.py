"""What stands for an attempt on its cluster: the tab of a job that asks the cluster itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apps.accounts.web.requests import SignedIn
from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs import selectors
from apps.jobs.models import Attempt, Job
from controlplane.ports.clusters import ClusterError, ClusterEvent, ClusterObject, Inspectable
from controlplane.web.pages import is_fragment
from controlplane.web.sentences import said

#: Of a launch with more, that many are shown.
MOST_SHOWN = 100


def inspected_attempts(attempts: list[Attempt]) -> list[Attempt]:
    """Those that are on a cluster which says something of itself, in the same order."""
    return [one for one in attempts if fleet.inspectable(one.cluster)]


def cluster_context(request: SignedIn, _found: Job, attempts: list[Attempt]) -> dict[str, Any]:
    """At first only where to ask; ``?attempt=`` names another one than the newest."""
    known = inspected_attempts(attempts)
    named = request.GET.get("attempt", "")
    shown = next((one for one in known if str(one.number) == named), known[0] if known else None)
    context: dict[str, Any] = {"shown": shown, "known": known}
    wanted = is_fragment(request) or bool(request.GET.get("asked"))
    if shown is None or shown.cluster is None or not wanted:
        return context
    return {**context, "asked": True, **_seen(shown, shown.cluster)}


def _seen(attempt: Attempt, where: Cluster) -> dict[str, Any]:
    """The objects and events of its launch, or why they cannot be shown."""

    def both(
        cluster: Inspectable,
    ) -> tuple[tuple[ClusterObject, ...], tuple[ClusterEvent, ...]]:
        return cluster.objects(attempt.launch_name), cluster.events(attempt.launch_name)

    try:
        objects, events = fleet.inspect(where, both)
    except ClusterError as error:
        return {"silent": said(str(error))}
    # A pod's status repeats the last lines of its log.
    masked = selectors.masker(attempt.job)
    return {
        "objects": [replace(one, text=masked(one.text)) for one in objects[:MOST_SHOWN]],
        "events": [replace(one, message=masked(one.message)) for one in events[:MOST_SHOWN]],
    }
