"""Cleanup of clusters: Launches that should not run, and working folders of ended attempts."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs.models import Attempt
from apps.jobs.services.direct_uploads import unfinished_uploads_abort
from apps.jobs.services.job_storage import checkpoints_mark_removed
from apps.jobs.services.secret_variables import RETRY_RETENTION, secret_variables_delete
from apps.models.selectors.storage import checkpoint_retention
from controlplane.domain.jobs.lifecycle import ATTEMPT, AttemptState
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.clusters import ClusterAdapter, ClusterError

log = logging.getLogger(__name__)

PREFIX = "attempt-"


def launches_clean_up(*, at: datetime) -> int:
    """Stop Launches that should not run and remove those no longer needed; return how many were changed.

    It also finds Launches that a worker without its lease created after their attempts had been stopped.
    """
    secret_variables_delete(at=at)
    touched = 0
    for cluster in Cluster.objects.all():
        try:
            touched += _clean_up_launches_on_cluster(cluster, fleet.cluster_adapter(cluster), at)
        except (ClusterError, AdapterNotFound) as error:
            log.warning(
                "cleanup of a cluster failed", extra={"cluster": cluster.name, "error": str(error)}
            )
    # Last: a store that does not answer takes its time.
    return touched + unfinished_uploads_abort()


def _clean_up_launches_on_cluster(cluster: Cluster, adapter: ClusterAdapter, at: datetime) -> int:
    names = [name for name in adapter.names() if name.startswith(PREFIX)]
    ended = Attempt.objects.filter(
        cluster=cluster,
        uid__in=[name.removeprefix(PREFIX) for name in names],
        state__in=ATTEMPT.final,
    )
    observed = adapter.observe(names)
    by_team, others = checkpoint_retention(default=RETRY_RETENTION)
    touched = 0
    for attempt in ended.select_related("job"):
        launch = observed.get(attempt.launch_name)
        if launch is not None and not launch.ended:
            log.warning(
                "the launch of an ended attempt was running", extra={"attempt": attempt.uid}
            )
            adapter.stop(attempt.launch_name, grace=timedelta())
            touched += 1
        elif _is_working_folder_removable(
            attempt, at, retention=by_team.get(attempt.job.team_id, others)
        ) and (
            # Recorded first: a retry must not continue from a folder that is about to be deleted.
            attempt.removed_at is not None or checkpoints_mark_removed(attempt, at=at)
        ):
            adapter.remove(attempt.launch_name)
            touched += 1
    return touched


def _is_working_folder_removable(attempt: Attempt, at: datetime, *, retention: timedelta) -> bool:
    """Whether the working folder of an ended attempt can be removed.

    Folders of succeeded attempts can; those of others are retained for a retry. A folder that is already marked as
    removed still exists because its cluster did not answer at that time.
    """
    if attempt.state == AttemptState.SUCCEEDED or attempt.removed_at is not None:
        return True
    return attempt.ended_at is not None and at - attempt.ended_at > retention
