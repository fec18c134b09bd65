"""What jobs keep in the artifact store and on clusters, and what they need of the registry's."""

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
from apps.jobs.models import Attempt, Job, UploadedFile
from apps.models.models import StorageMeasure
from apps.models.selectors import artifact_store
from apps.models.selectors.sources import Hold
from controlplane.domain.jobs import ENDED_ATTEMPT_STATES, ENDED_JOB_STATES, AttemptState, JobState
from controlplane.domain.retention import Item, ItemKind
from controlplane.domain.storage import StorageKind
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.clusters import Cluster as ClusterAdapter
from controlplane.ports.clusters import ClusterError
from controlplane.ports.registry import UnknownAdapter

log = logging.getLogger(__name__)

#: How long after its end a job's inputs are kept from rules, so that it can be tried again.
RETRYABLE_FOR = timedelta(days=7)
PREFIX = "attempt-"
#: The artifacts that a job reads.
_INPUTS = ("model_version__artifact", "dataset_version__artifact", "code")
#: Attempts whose working folder has not been given up, and those whose log is kept.
_FOLDER = Q(cluster__isnull=False, removed_at=None)
_LOG = ~Q(log_digest="")
#: What is read of an attempt to say what it left.
_SHOWN = (
    *("uid", "number", "state", "cluster", "ended_at", "removed_at", "log_digest"),
    *("job__uid", "job__name", "job__state", "job__team__uid"),
)


class JobStorage:
    """Implements ``apps.models.selectors.sources.StorageSource``."""

    name = "jobs"

    def digests(self) -> Iterator[str]:
        yield from UploadedFile.objects.values_list("digest", flat=True).iterator()
        logs = Attempt.objects.exclude(log_digest="")
        yield from logs.values_list("log_digest", flat=True).iterator()

    def holds(self, *, at: datetime, of: Collection[int] | None = None) -> Mapping[int, Hold]:
        live = ~Q(state__in=ENDED_JOB_STATES)
        retryable = ~Q(state=JobState.SUCCEEDED) & Q(ended_at__gt=at - RETRYABLE_FOR)
        jobs = Job.objects.filter(live | retryable)
        if of is not None:
            read = (Q(**{f"{path}__in": of}) for path in _INPUTS)
            jobs = jobs.filter(reduce(or_, read))
        rows = jobs.values_list("name", "state", *_INPUTS)
        found: dict[int, Hold] = {}
        # The live ones last: theirs is the reason that counts.
        for name, state, *inputs in sorted(rows, key=lambda row: row[1] not in ENDED_JOB_STATES):
            firm = state not in ENDED_JOB_STATES
            reason = f"job {name} is {state}" if firm else f"job {name} can still be tried again"
            hold = Hold(reason=reason, firm=firm)
            found |= {key: hold for key in inputs if key and (of is None or key in of)}
        return found

    def items(self) -> Iterable[Item]:
        return _items(Attempt.objects.all())

    def items_largest(self, *, teams: Collection[int], count: int) -> Iterable[Item]:
        ended = Attempt.objects.filter(state__in=ENDED_ATTEMPT_STATES, job__team__in=teams)
        measured = StorageMeasure.objects.filter(
            Q(kind=StorageKind.CHECKPOINTS, owner_uid__in=ended.filter(_FOLDER).values("uid"))
            | Q(kind=StorageKind.LOGS, owner_uid__in=ended.filter(_LOG).values("uid"))
        )
        handed = UploadedFile.objects.filter(attempt__in=ended).order_by().values("attempt__uid")
        handed = handed.annotate(total=Sum("size")).order_by("-total")
        uids = {
            *measured.order_by("-size").values_list("owner_uid", flat=True)[:count],
            *handed.values_list("attempt__uid", flat=True)[:count],
        }
        return _items(Attempt.objects.filter(uid__in=uids))

    def items_of(self, uid: str) -> Iterable[Item]:
        return _items(Attempt.objects.filter(uid=uid))

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


def _items(attempts: QuerySet[Attempt]) -> Iterator[Item]:
    """What those of them that have ended left."""
    continued = Attempt.objects.filter(continues=OuterRef("pk")).exclude(
        state__in=ENDED_ATTEMPT_STATES
    )
    uploads = UploadedFile.objects.filter(attempt=OuterRef("pk")).order_by().values("attempt")
    rows = (
        attempts.filter(_FOLDER | _LOG | Exists(uploads), state__in=ENDED_ATTEMPT_STATES)
        .annotate(
            folder=_measure(StorageKind.CHECKPOINTS),
            log=_measure(StorageKind.LOGS),
            bytes=Subquery(uploads.annotate(total=Sum("size")).values("total")),
            continued=Exists(continued),
        )
        .select_related("job__team")
        .only(*_SHOWN)
    )
    for attempt in rows.iterator():
        if attempt.cluster_id is not None and attempt.removed_at is None:
            busy = attempt.continued or attempt.job.state not in ENDED_JOB_STATES
            held = f"job {attempt.job.name} is {attempt.job.state}" if busy else ""
            yield _item(ItemKind.CHECKPOINTS, attempt, size=attempt.folder or 0, held=held)
        if attempt.log_digest:
            yield _item(ItemKind.LOG, attempt, size=attempt.log or 0)
        if attempt.bytes is not None:
            yield _item(ItemKind.UPLOADS, attempt, size=attempt.bytes)


def _measure(kind: StorageKind) -> Subquery:
    """Bytes of that kind of the attempt of the row; null where they were not measured."""
    return Subquery(
        StorageMeasure.objects.filter(kind=kind, owner_uid=OuterRef("uid")).values("size")
    )


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
            for name, size in adapter.footprints(_folders(adapter)).items():
                found[name.removeprefix(PREFIX)] = size
        except (ClusterError, UnknownAdapter) as error:
            silent.append(cluster)
            log.warning(
                "folders were not measured", extra={"cluster": cluster.name, "error": str(error)}
            )
    return found, silent


def folders_without_attempt() -> list[tuple[Cluster, str]]:
    """Working folders on clusters that answer, by name, of attempts that no row tells of.

    Only a database that was put back to an earlier day has forgotten them.
    """
    found: list[tuple[Cluster, str]] = []
    for cluster in Cluster.objects.all():
        try:
            names = _folders(fleet.cluster_adapter(cluster))
        except (ClusterError, UnknownAdapter) as error:
            log.warning(
                "folders were not looked at", extra={"cluster": cluster.name, "error": str(error)}
            )
            continue
        uids = [name.removeprefix(PREFIX) for name in names]
        known = frozenset(Attempt.objects.filter(uid__in=uids).values_list("uid", flat=True))
        found += [(cluster, f"{PREFIX}{uid}") for uid in uids if uid not in known]
    return found


def _folders(adapter: ClusterAdapter) -> list[str]:
    return sorted(name for name in adapter.names() if name.startswith(PREFIX))


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
