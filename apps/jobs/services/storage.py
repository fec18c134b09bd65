"""What jobs keep in the artifact store and on clusters, and what they need of the registry's."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs.models import Attempt, Job, UploadedFile
from apps.models.models import StorageMeasure
from apps.models.selectors import artifact_store
from apps.models.selectors.sources import Hold
from controlplane.domain.jobs import ENDED_ATTEMPT_STATES, ENDED_JOB_STATES, AttemptState, JobState
from controlplane.domain.retention import Item, ItemKind
from controlplane.domain.storage import StorageKind
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.clusters import ClusterError
from controlplane.ports.registry import UnknownAdapter

log = logging.getLogger(__name__)

#: How long after its end a job's inputs are kept from rules, so that it can be tried again.
RETRYABLE_FOR = timedelta(days=7)
PREFIX = "attempt-"
_MEASURED = (StorageKind.CHECKPOINTS, StorageKind.LOGS)


class JobStorage:
    """Implements ``apps.models.selectors.sources.StorageSource``."""

    name = "jobs"

    def digests(self) -> Iterator[str]:
        yield from UploadedFile.objects.values_list("digest", flat=True).iterator()
        logs = Attempt.objects.exclude(log_digest="")
        yield from logs.values_list("log_digest", flat=True).iterator()

    def holds(self, *, at: datetime) -> Mapping[int, Hold]:
        live = ~Q(state__in=ENDED_JOB_STATES)
        retryable = ~Q(state=JobState.SUCCEEDED) & Q(ended_at__gt=at - RETRYABLE_FOR)
        found: dict[int, Hold] = {}
        rows = Job.objects.filter(live | retryable).select_related(
            "model_version", "dataset_version"
        )
        # The live ones last: theirs is the reason that counts.
        for job in sorted(rows, key=lambda job: job.state not in ENDED_JOB_STATES):
            firm = job.state not in ENDED_JOB_STATES
            reason = (
                f"job {job.name} is {job.state}"
                if firm
                else f"job {job.name} can still be tried again"
            )
            for key in _inputs(job):
                found[key] = Hold(reason=reason, firm=firm)
        return found

    def items(self) -> Iterable[Item]:
        sizes = {
            (measure.kind, measure.owner_uid): measure.size
            for measure in StorageMeasure.objects.filter(kind__in=_MEASURED)
        }
        continued = Attempt.objects.filter(continues=OuterRef("pk")).exclude(
            state__in=ENDED_ATTEMPT_STATES
        )
        ended = Attempt.objects.filter(state__in=ENDED_ATTEMPT_STATES).annotate(
            bytes=Sum("uploads__size"), continued=Exists(continued)
        )
        for attempt in ended.select_related("job__team").defer("manifest", "log_tail"):
            if attempt.cluster_id is not None and attempt.removed_at is None:
                busy = attempt.continued or attempt.job.state not in ENDED_JOB_STATES
                held = f"job {attempt.job.name} is {attempt.job.state}" if busy else ""
                size = sizes.get((StorageKind.CHECKPOINTS, attempt.uid), 0)
                yield _item(ItemKind.CHECKPOINTS, attempt, size=size, held=held)
            if attempt.log_digest:
                size = sizes.get((StorageKind.LOGS, attempt.uid), 0)
                yield _item(ItemKind.LOG, attempt, size=size)
            if attempt.bytes is not None:
                yield _item(ItemKind.UPLOADS, attempt, size=attempt.bytes)

    def uses(self) -> Iterable[tuple[int, StorageKind, int]]:
        # What a success handed over is charged as what it became.
        uploads = UploadedFile.objects.exclude(attempt__state=AttemptState.SUCCEEDED).order_by()
        totals = uploads.values(team=F("attempt__job__team")).annotate(total=Sum("size"))
        for row in totals:
            yield row["team"], StorageKind.JOB_FILES, row["total"]

    def measure(self, *, at: datetime) -> None:
        folders, silent = _folder_sizes()
        attempts = Attempt.objects.filter(uid__in=folders).select_related("job")
        _measured(
            {attempt: folders[attempt.uid] for attempt in attempts},
            kind=StorageKind.CHECKPOINTS,
            at=at,
        )
        gone = StorageMeasure.objects.filter(kind=StorageKind.CHECKPOINTS)
        unseen = Attempt.objects.filter(cluster__in=silent, removed_at=None).values("uid")
        gone.exclude(owner_uid__in=folders).exclude(owner_uid__in=unseen).delete()
        known = StorageMeasure.objects.filter(kind=StorageKind.LOGS).values("owner_uid")
        logs = Attempt.objects.exclude(log_digest="").exclude(uid__in=known).select_related("job")
        _measured(dict(_log_sizes(logs)), kind=StorageKind.LOGS, at=at)

    def makers(self, uids: Collection[str]) -> Mapping[str, tuple[str, str]]:
        rows = Attempt.objects.filter(uid__in=uids).select_related("job")
        return {attempt.uid: (str(attempt), attempt.job.uid) for attempt in rows}

    def remove(self, item: Item, *, at: datetime) -> bool:
        attempt = Attempt.objects.filter(uid=item.uid).select_related("cluster").first()
        if attempt is None:
            return False
        match item.kind:
            case ItemKind.CHECKPOINTS:
                return checkpoints_remove(attempt, at=at)
            case ItemKind.UPLOADS:
                return bool(UploadedFile.objects.filter(attempt=attempt).delete()[0])
            case ItemKind.LOG:
                return _log_remove(attempt)
            case _:
                return False


@transaction.atomic
def checkpoints_give_up(attempt: Attempt, *, at: datetime) -> bool:
    """Let no retry go on from the working folder any more; False if its job goes on, or it is given up."""
    # A retry takes the same lock before it decides what it goes on from.
    job = Job.objects.select_for_update(no_key=True).get(pk=attempt.job_id)
    if job.state not in ENDED_JOB_STATES:
        return False
    rows = Attempt.objects.filter(pk=attempt.pk, removed_at=None, state__in=ENDED_ATTEMPT_STATES)
    if not rows.update(removed_at=at):
        return False
    StorageMeasure.objects.filter(kind=StorageKind.CHECKPOINTS, owner_uid=attempt.uid).delete()
    return True


def checkpoints_remove(attempt: Attempt, *, at: datetime) -> bool:
    """Delete the working folder of an ended attempt, unless its job goes on; False if it stays."""
    # Said first: a retry must not count on a folder that is about to go.
    if attempt.cluster is None or not checkpoints_give_up(attempt, at=at):
        return False
    try:
        fleet.cluster_adapter(attempt.cluster).remove(attempt.launch_name)
    except (ClusterError, UnknownAdapter) as error:
        # The sweep finds the folder again.
        log.warning("a folder stays for now", extra={"attempt": attempt.uid, "error": str(error)})
    return True


def _log_remove(attempt: Attempt) -> bool:
    with transaction.atomic():
        StorageMeasure.objects.filter(kind=StorageKind.LOGS, owner_uid=attempt.uid).delete()
        rows = Attempt.objects.filter(pk=attempt.pk, state__in=ENDED_ATTEMPT_STATES)
        return bool(rows.exclude(log_digest="").update(log_digest=""))


def _inputs(job: Job) -> Iterator[int]:
    """Primary keys of the artifacts that it reads."""
    if job.model_version is not None and job.model_version.artifact_id is not None:
        yield job.model_version.artifact_id
    if job.dataset_version is not None:
        yield job.dataset_version.artifact_id
    if job.code_id is not None:
        yield job.code_id


def _item(kind: ItemKind, attempt: Attempt, *, size: int, held: str = "") -> Item:
    return Item(
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


def _folder_sizes() -> tuple[dict[str, int], list[Cluster]]:
    """Bytes of each working folder, by the attempt's uid, and the clusters that did not answer."""
    found: dict[str, int] = {}
    silent: list[Cluster] = []
    for cluster in Cluster.objects.all():
        try:
            adapter = fleet.cluster_adapter(cluster)
            names = [name for name in adapter.names() if name.startswith(PREFIX)]
            for name, size in adapter.footprints(names).items():
                found[name.removeprefix(PREFIX)] = size
        except (ClusterError, UnknownAdapter) as error:
            silent.append(cluster)
            log.warning(
                "folders were not measured", extra={"cluster": cluster.name, "error": str(error)}
            )
    return found, silent


def _log_sizes(attempts: QuerySet[Attempt]) -> Iterator[tuple[Attempt, int]]:
    store = artifact_store()
    for attempt in attempts:
        try:
            yield attempt, store.size(attempt.log_digest)
        except BlobMissing:
            yield attempt, 0


def _measured(sizes: Mapping[Attempt, int], *, kind: StorageKind, at: datetime) -> None:
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
