"""Storage of jobs: working folders, uploads and logs of attempts, and the artifacts that jobs still need."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs.models import Attempt, AttemptCheckpoint, AttemptUpload, Job
from apps.jobs.services.attempt_reports import CHECKPOINT_UPLOADS
from apps.models.models import StorageMeasure
from apps.models.selectors import artifact_store
from apps.models.selectors.storage_consumers import StorageConsumer, StorageHold
from controlplane.domain.common.reasons import Reason
from controlplane.domain.jobs.lifecycle import (
    ENDED_ATTEMPT_STATES,
    ENDED_JOB_STATES,
    AttemptState,
    JobState,
)
from controlplane.domain.storage.team_storage import RetentionItem, RetentionItemKind, StorageKind
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.clusters import ClusterAdapter, ClusterError

log = logging.getLogger(__name__)

#: How long after its end a job protects its inputs from retention rules, so that it can be retried.
RETRYABLE_FOR = timedelta(days=7)
PREFIX = "attempt-"
#: Relations of the artifacts that a job reads.
_INPUTS = ("model_version__artifact", "dataset_version__artifact", "code")
#: Attempts whose working folder is not marked as removed, and those whose log is stored.
_FOLDER = Q(cluster__isnull=False, removed_at=None)
_LOG = ~Q(log_digest="")
#: Columns that are read of an attempt to list its retention items.
_ITEM_COLUMNS = (
    *("uid", "number", "state", "cluster", "ended_at", "removed_at", "log_digest"),
    *("job__uid", "job__name", "job__state", "job__team__uid"),
)


class JobStorage(StorageConsumer):
    """Working folders, uploads, checkpoints and logs of attempts, and the inputs of jobs."""

    def digests(self) -> Iterator[str]:
        # Before checkpoints: uploads become checkpoints, never the reverse.
        yield from AttemptUpload.objects.values_list("digest", flat=True).iterator()
        for files in AttemptCheckpoint.objects.values_list("files", flat=True).iterator():
            yield from (f"sha256:{file['sha256']}" for file in files)
        logs = Attempt.objects.exclude(log_digest="")
        yield from logs.values_list("log_digest", flat=True).iterator()

    def holds(
        self, *, at: datetime, of: Collection[int] | None = None
    ) -> Mapping[int, StorageHold]:
        live = ~Q(state__in=ENDED_JOB_STATES)
        retryable = ~Q(state=JobState.SUCCEEDED) & Q(ended_at__gt=at - RETRYABLE_FOR)
        jobs = Job.objects.filter(live | retryable)
        if of is not None:
            read = (Q(**{f"{path}__in": of}) for path in _INPUTS)
            jobs = jobs.filter(reduce(or_, read))
        rows = jobs.values_list("name", "state", *_INPUTS)
        sizes: dict[int, StorageHold] = {}
        # Live jobs last, because their reason takes precedence.
        for name, state, *inputs in sorted(rows, key=lambda row: row[1] not in ENDED_JOB_STATES):
            firm = state not in ENDED_JOB_STATES
            reason = (
                Reason("artifact.hold.job_active", "job {job} is {state}", job=name, state=state)
                if firm
                else Reason(
                    "artifact.hold.job_retryable", "job {job} can still be retried", job=name
                )
            )
            hold = StorageHold(reason=reason, firm=firm)
            sizes |= {key: hold for key in inputs if key and (of is None or key in of)}
        return sizes

    def items(self) -> Iterable[RetentionItem]:
        return _retention_items(Attempt.objects.all())

    def largest_items(self, *, teams: Collection[int], count: int) -> Iterable[RetentionItem]:
        ended = Attempt.objects.filter(state__in=ENDED_ATTEMPT_STATES, job__team__in=teams)
        measured = StorageMeasure.objects.filter(
            Q(kind=StorageKind.CHECKPOINTS, owner_uid__in=ended.filter(_FOLDER).values("uid"))
            | Q(kind=StorageKind.LOGS, owner_uid__in=ended.filter(_LOG).values("uid"))
        )
        uploaded = AttemptUpload.objects.filter(attempt__in=ended).order_by().values("attempt__uid")
        uploaded = uploaded.annotate(total=Sum("size")).order_by("-total")
        stored = AttemptCheckpoint.objects.filter(attempt__in=ended).values("attempt__uid")
        stored_sizes = stored.annotate(total=Sum("size")).order_by("-total")
        uids = {
            *stored_sizes.values_list("attempt__uid", flat=True)[:count],
            *measured.order_by("-size").values_list("owner_uid", flat=True)[:count],
            *uploaded.values_list("attempt__uid", flat=True)[:count],
        }
        return _retention_items(Attempt.objects.filter(uid__in=uids))

    def items_of_attempt(self, uid: str) -> Iterable[RetentionItem]:
        return _retention_items(Attempt.objects.filter(uid=uid))

    def usage(self) -> Iterable[tuple[int, StorageKind, int]]:
        # Uploads of succeeded attempts are charged as the outputs that they became.
        uploads = AttemptUpload.objects.exclude(attempt__state=AttemptState.SUCCEEDED).order_by()
        totals = uploads.values(team=F("attempt__job__team")).annotate(total=Sum("size"))
        for row in totals:
            yield row["team"], StorageKind.JOB_FILES, row["total"]
        checkpoints = AttemptCheckpoint.objects.order_by().values(team=F("attempt__job__team"))
        for row in checkpoints.annotate(total=Sum("size")):
            yield row["team"], StorageKind.CHECKPOINTS, row["total"]

    def measure(self, *, at: datetime) -> None:
        folders, unreachable = _measure_working_folders()
        attempts = Attempt.objects.filter(uid__in=folders).select_related("job")
        _store_measures(
            {attempt: folders[attempt.uid] for attempt in attempts},
            kind=StorageKind.CHECKPOINTS,
            at=at,
        )
        stale = StorageMeasure.objects.filter(kind=StorageKind.CHECKPOINTS)
        unreachable_attempts = Attempt.objects.filter(
            cluster__in=unreachable, removed_at=None
        ).values("uid")
        stale.exclude(owner_uid__in=folders).exclude(owner_uid__in=unreachable_attempts).delete()
        known = StorageMeasure.objects.filter(kind=StorageKind.LOGS).values("owner_uid")
        logs = Attempt.objects.exclude(log_digest="").exclude(uid__in=known).select_related("job")
        _store_measures(dict(_log_sizes(logs)), kind=StorageKind.LOGS, at=at)

    def attempt_labels(self, uids: Collection[str]) -> Mapping[str, tuple[str, str]]:
        rows = Attempt.objects.filter(uid__in=uids).select_related("job")
        return {attempt.uid: (str(attempt), attempt.job.uid) for attempt in rows}

    def remove(self, item: RetentionItem, *, at: datetime) -> bool:
        attempt = Attempt.objects.filter(uid=item.uid).select_related("cluster").first()
        if attempt is None:
            return False
        match item.kind:
            case RetentionItemKind.CHECKPOINTS:
                return checkpoints_remove(attempt, at=at)
            case RetentionItemKind.UPLOADS:
                return bool(AttemptUpload.objects.filter(attempt=attempt).delete()[0])
            case RetentionItemKind.LOG:
                return _remove_attempt_log(attempt)
            case _:
                return False


@transaction.atomic
def checkpoints_mark_removed(attempt: Attempt, *, at: datetime) -> bool:
    """Mark the working folder as removed and delete stored checkpoints, so that no retry continues from them.

    :return: False if the job has not ended, or the folder is marked already.
    """
    # A retry takes the same lock before it decides what it continues from.
    job = Job.objects.select_for_update(no_key=True).get(pk=attempt.job_id)
    if job.state not in ENDED_JOB_STATES:
        return False
    AttemptCheckpoint.objects.filter(attempt=attempt).delete()
    rows = Attempt.objects.filter(pk=attempt.pk, removed_at=None, state__in=ENDED_ATTEMPT_STATES)
    if not rows.update(removed_at=at):
        return False
    StorageMeasure.objects.filter(kind=StorageKind.CHECKPOINTS, owner_uid=attempt.uid).delete()
    return True


def stored_checkpoints_delete(job: Job) -> None:
    """Delete the stored checkpoints of a job that has succeeded; garbage collection deletes their bytes."""
    AttemptCheckpoint.objects.filter(attempt__job=job).delete()
    uploads = AttemptUpload.objects.filter(attempt__job=job, path__startswith=CHECKPOINT_UPLOADS)
    uploads.delete()


def checkpoints_remove(attempt: Attempt, *, at: datetime) -> bool:
    """Delete the working folder of an ended attempt; False if its job has not ended."""
    # Recorded first: a retry must not continue from a folder that is about to be deleted.
    if attempt.cluster is None or not checkpoints_mark_removed(attempt, at=at):
        return False
    try:
        fleet.cluster_adapter(attempt.cluster).remove(attempt.launch_name)
    except (ClusterError, AdapterNotFound) as error:
        # The cleanup removes the folder later.
        log.warning(
            "a working folder could not be removed",
            extra={"attempt": attempt.uid, "error": str(error)},
        )
    return True


def _remove_attempt_log(attempt: Attempt) -> bool:
    with transaction.atomic():
        StorageMeasure.objects.filter(kind=StorageKind.LOGS, owner_uid=attempt.uid).delete()
        rows = Attempt.objects.filter(pk=attempt.pk, state__in=ENDED_ATTEMPT_STATES)
        return bool(rows.exclude(log_digest="").update(log_digest=""))


def _retention_items(attempts: QuerySet[Attempt]) -> Iterator[RetentionItem]:
    """Retention items of the ended ones among the attempts."""
    continued = Attempt.objects.filter(continues=OuterRef("pk")).exclude(
        state__in=ENDED_ATTEMPT_STATES
    )
    uploads = AttemptUpload.objects.filter(attempt=OuterRef("pk")).order_by().values("attempt")
    stored = AttemptCheckpoint.objects.filter(attempt=OuterRef("pk")).order_by().values("attempt")
    rows = (
        attempts.filter(_FOLDER | _LOG | Exists(uploads), state__in=ENDED_ATTEMPT_STATES)
        .annotate(
            folder=_measured_size(StorageKind.CHECKPOINTS),
            log=_measured_size(StorageKind.LOGS),
            bytes=Subquery(uploads.annotate(total=Sum("size")).values("total")),
            stored=Subquery(stored.annotate(total=Sum("size")).values("total")),
            continued=Exists(continued),
        )
        .select_related("job__team")
        .only(*_ITEM_COLUMNS)
    )
    for attempt in rows.iterator():
        if attempt.cluster_id is not None and attempt.removed_at is None:
            busy = attempt.continued or attempt.job.state not in ENDED_JOB_STATES
            held = f"job {attempt.job.name} is {attempt.job.state}" if busy else ""
            size = (attempt.folder or 0) + (attempt.stored or 0)
            yield _retention_item(RetentionItemKind.CHECKPOINTS, attempt, size=size, held=held)
        if attempt.log_digest:
            yield _retention_item(RetentionItemKind.LOG, attempt, size=attempt.log or 0)
        if attempt.bytes is not None:
            yield _retention_item(RetentionItemKind.UPLOADS, attempt, size=attempt.bytes)


def _measured_size(kind: StorageKind) -> Subquery:
    """Bytes of that kind of the attempt of the row; null if not measured."""
    return Subquery(
        StorageMeasure.objects.filter(kind=kind, owner_uid=OuterRef("uid")).values("size")
    )


def _retention_item(
    kind: RetentionItemKind, attempt: Attempt, *, size: int, held: str = ""
) -> RetentionItem:
    return RetentionItem(
        kind=kind,
        uid=attempt.uid,
        name=str(attempt),
        series=attempt.job.uid,
        team=attempt.job.team.uid,
        size=size,
        at=attempt.ended_at,
        held=held,
        failed=attempt.state != AttemptState.SUCCEEDED,
    )


def _measure_working_folders() -> tuple[dict[str, int], list[Cluster]]:
    """Bytes of each working folder by the attempt's uid, and the unreachable clusters."""
    sizes: dict[str, int] = {}
    unreachable: list[Cluster] = []
    for cluster in Cluster.objects.all():
        try:
            adapter = fleet.cluster_adapter(cluster)
            for name, size in adapter.disk_usage_by_launch(
                _working_folders_on_cluster(adapter)
            ).items():
                sizes[name.removeprefix(PREFIX)] = size
        except (ClusterError, AdapterNotFound) as error:
            unreachable.append(cluster)
            log.warning(
                "folders could not be measured",
                extra={"cluster": cluster.name, "error": str(error)},
            )
    return sizes, unreachable


def orphaned_launch_folders() -> list[tuple[Cluster, str]]:
    """Names of working folders, on reachable clusters, whose attempts are not in the database.

    They exist only after a restore of an older backup.
    """
    sizes: list[tuple[Cluster, str]] = []
    for cluster in Cluster.objects.all():
        try:
            names = _working_folders_on_cluster(fleet.cluster_adapter(cluster))
        except (ClusterError, AdapterNotFound) as error:
            log.warning(
                "folders could not be listed", extra={"cluster": cluster.name, "error": str(error)}
            )
            continue
        uids = [name.removeprefix(PREFIX) for name in names]
        known = frozenset(Attempt.objects.filter(uid__in=uids).values_list("uid", flat=True))
        sizes += [(cluster, f"{PREFIX}{uid}") for uid in uids if uid not in known]
    return sizes


def _working_folders_on_cluster(adapter: ClusterAdapter) -> list[str]:
    return sorted(name for name in adapter.names() if name.startswith(PREFIX))


def _log_sizes(attempts: QuerySet[Attempt]) -> Iterator[tuple[Attempt, int]]:
    store = artifact_store()
    for attempt in attempts:
        try:
            yield attempt, store.size(attempt.log_digest)
        except BlobMissing:
            yield attempt, 0


def _store_measures(sizes: Mapping[Attempt, int], *, kind: StorageKind, at: datetime) -> None:
    StorageMeasure.objects.bulk_create(
        (
            StorageMeasure(
                team_id=attempt.job.team_id,
                kind=kind,
                owner_uid=attempt.uid,
                size=size,
                measured_at=at,
            )
            for attempt, size in sizes.items()
        ),
        update_conflicts=True,
        unique_fields=("kind", "owner_uid"),
        update_fields=("size", "measured_at", "team"),
    )
