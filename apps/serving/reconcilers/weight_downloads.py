"""Controller of weight downloads, and clean-up of their Launches."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.models import selectors as registry_selectors
from apps.serving.models import WeightDownload
from apps.serving.services import weight_downloads as weights
from controlplane.domain.common.reasons import Reason
from controlplane.domain.serving.lifecycle import (
    ACTIVE_WEIGHT_DOWNLOAD_STATES,
    WeightDownloadEvent,
    WeightDownloadState,
)
from controlplane.persistence.leases import reconcile_rows
from controlplane.ports.artifacts import ArtifactError, StorageUnavailable
from controlplane.ports.clusters import (
    ClusterAdapter,
    ClusterUnavailable,
    ExitCause,
    LaunchRefused,
    ObservedLaunch,
)

#: Launches of weight downloads are named ``weights-<uid>``.
WEIGHTS_PREFIX = "weights-"
WEIGHTS_LEASE = timedelta(seconds=60)
WEIGHTS_BATCH = 64


def weight_downloads_reconcile(*, at: datetime, uid: str | None = None) -> int:
    """Reconcile each weight download that has not ended; return how many were leased."""
    rows = WeightDownload.objects.filter(state__in=ACTIVE_WEIGHT_DOWNLOAD_STATES)
    if uid is not None:
        rows = rows.filter(uid=uid)
    rows = rows.select_related(
        "team", "node__cluster", "model_version__line", "model_version__artifact"
    )
    unreachable: dict[int, Reason] = {}

    def reconcile(row: WeightDownload) -> None:
        cluster = row.node.cluster
        if cluster.pk not in unreachable:
            try:
                _reconcile_weight_download(row, at)
            except ClusterUnavailable as error:
                unreachable[cluster.pk] = error.message
        if cluster.pk in unreachable:
            _set_weights_message(row, unreachable[cluster.pk])

    return reconcile_rows(
        rows, reconcile, limit=WEIGHTS_BATCH, ttl=WEIGHTS_LEASE, record_error=_set_weights_message
    )


def _set_weights_message(row: WeightDownload, message: str, **changes: int) -> None:
    values = {"message": message, **changes}
    if any(getattr(row, name) != value for name, value in values.items()):
        WeightDownload.objects.filter(
            pk=row.pk, lease_token=row.lease_token, state__in=ACTIVE_WEIGHT_DOWNLOAD_STATES
        ).update(**values)


def _reconcile_weight_download(row: WeightDownload, at: datetime) -> None:
    if row.node.removed_at is not None or row.node.cluster.removed_at is not None:
        stopping = row.state == WeightDownloadState.STOPPING
        weights.weight_download_transition(
            row,
            WeightDownloadEvent.CONFIRM if stopping else WeightDownloadEvent.FAIL,
            at=at,
            reason=Reason(
                "weights.node.removed", "the node {node} was removed", node=row.node.name
            ),
        )
        return
    adapter = fleet.cluster_adapter(row.node.cluster)
    if row.state == WeightDownloadState.PENDING:
        _start_weight_download(row, adapter, at)
        return
    if row.state == WeightDownloadState.STOPPING:
        adapter.stop(row.launch_name, grace=timedelta())
    observed = adapter.observe([row.launch_name]).get(row.launch_name)
    if observed is not None and not observed.ended:
        _record_weights_progress(row, observed)
        return
    if row.state == WeightDownloadState.STOPPING:
        weights.weight_download_transition(
            row, WeightDownloadEvent.CONFIRM, at=at, reason=row.message
        )
    else:
        _end_weight_download(row, observed, at)
    # If it fails here, the clean-up removes it.
    adapter.remove(row.launch_name)


def _end_weight_download(
    row: WeightDownload, observed: ObservedLaunch | None, at: datetime
) -> None:
    last = observed.replicas[0] if observed is not None else None
    if last is not None and last.cause is ExitCause.FINISHED:
        weights.weight_download_transition(
            row,
            WeightDownloadEvent.SUCCEED,
            at=at,
            reason=Reason("weights.state.downloaded", "the weights are on the node"),
            downloaded=row.size,
        )
        return
    lost = Reason("launch.state.not_reported", "the cluster no longer reports the workload")
    weights.weight_download_transition(
        row,
        WeightDownloadEvent.FAIL,
        at=at,
        reason=(last.message if last is not None else "") or lost,
    )


def _start_weight_download(row: WeightDownload, adapter: ClusterAdapter, at: datetime) -> None:
    try:
        launch = weights.weight_download_launch(row)
        adapter.launch(registry_selectors.launch_with_downloads(launch, cluster=adapter))
    except StorageUnavailable as error:
        _set_weights_message(row, str(error))
        return
    except (LaunchRefused, ArtifactError, ValueError) as refusal:
        weights.weight_download_transition(
            row, WeightDownloadEvent.FAIL, at=at, reason=str(refusal)
        )
        return
    weights.weight_download_transition(
        row,
        WeightDownloadEvent.LAUNCH,
        at=at,
        reason=Reason("launch.state.starting", "starting"),
    )


def _record_weights_progress(row: WeightDownload, observed: ObservedLaunch) -> None:
    replica = observed.replicas[0]
    if row.state == WeightDownloadState.STOPPING:
        return
    downloaded = row.downloaded if replica.downloaded is None else replica.downloaded
    _set_weights_message(
        row, replica.message or row.message, downloaded=min(row.size, int(downloaded))
    )


def weight_launches_cleanup(
    cluster: Cluster, adapter: ClusterAdapter, names: Collection[str]
) -> int:
    """Stop and remove those of the named Launches whose weight download has ended; return how many were."""
    uids = [name.removeprefix(WEIGHTS_PREFIX) for name in names if name.startswith(WEIGHTS_PREFIX)]
    rows = WeightDownload.objects.filter(node__cluster=cluster, uid__in=uids)
    ended = [row.launch_name for row in rows.exclude(state__in=ACTIVE_WEIGHT_DOWNLOAD_STATES)]
    observed = adapter.observe(ended)
    for name in ended:
        if name in observed and not observed[name].ended:
            adapter.stop(name, grace=timedelta())
        else:
            adapter.remove(name)
    return len(ended)
