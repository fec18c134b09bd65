"""Tidy the clusters: what ended attempts leave behind, and what should not run."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs.models import Attempt
from apps.jobs.services.secret_variables import KEPT_FOR_RETRY, secret_variables_delete
from apps.jobs.services.storage import checkpoints_give_up
from apps.models.selectors.storage import checkpoints_kept
from controlplane.domain.jobs import ATTEMPT, AttemptState
from controlplane.ports.clusters import Cluster as ClusterAdapter
from controlplane.ports.clusters import ClusterError
from controlplane.ports.registry import UnknownAdapter

log = logging.getLogger(__name__)

PREFIX = "attempt-"


def launches_sweep(*, at: datetime) -> int:
    """Stop what should not run and remove what nobody needs; say how many Launches were touched.

    A worker so slow that it lost its lease may have launched an attempt that had been stopped meanwhile:
    this finds it.
    """
    secret_variables_delete(at=at)
    touched = 0
    for cluster in Cluster.objects.all():
        try:
            touched += _sweep(cluster, fleet.cluster_adapter(cluster), at)
        except (ClusterError, UnknownAdapter) as error:
            log.warning("a sweep failed", extra={"cluster": cluster.name, "error": str(error)})
    return touched


def _sweep(cluster: Cluster, adapter: ClusterAdapter, at: datetime) -> int:
    names = [name for name in adapter.names() if name.startswith(PREFIX)]
    ended = Attempt.objects.filter(
        cluster=cluster,
        uid__in=[name.removeprefix(PREFIX) for name in names],
        state__in=ATTEMPT.final,
    )
    observed = adapter.observe(names)
    by_team, others = checkpoints_kept(default=KEPT_FOR_RETRY)
    touched = 0
    for attempt in ended.select_related("job"):
        launch = observed.get(attempt.launch_name)
        if launch is not None and not launch.ended:
            log.warning("something ran that had been stopped", extra={"attempt": attempt.uid})
            adapter.stop(attempt.launch_name, grace=timedelta())
            touched += 1
        elif _is_needless(attempt, at, kept=by_team.get(attempt.job.team_id, others)) and (
            # Said first: a retry must not count on a folder that is about to go.
            attempt.removed_at is not None or checkpoints_give_up(attempt, at=at)
        ):
            adapter.remove(attempt.launch_name)
            touched += 1
    return touched


def _is_needless(attempt: Attempt, at: datetime, *, kept: timedelta) -> bool:
    """A success needs its working folder no more; anything else may be gone on from for a while.

    One that was given up is still there because its cluster did not answer then.
    """
    if attempt.state == AttemptState.SUCCEEDED or attempt.removed_at is not None:
        return True
    return attempt.ended_at is not None and at - attempt.ended_at > kept
