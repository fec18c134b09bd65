"""The artifact store and its artifacts; usage by team, stored items, deletion blockers and retention rules."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db.models import F, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.models import (
    Artifact,
    ArtifactKind,
    HubImport,
    ModelVersion,
    RetentionRule,
    StorageMeasure,
    StorageQuota,
    StorageRun,
    StoreSize,
)
from apps.models.selectors.storage_consumers import storage_consumers
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.domain.storage.team_storage import (
    RetentionItem,
    RetentionItemKind,
    RetentionRules,
    StorageKind,
    StorageUse,
)
from controlplane.ports import adapter_registry
from controlplane.ports.artifacts import ArtifactStore, BlobMissing, SigningStore
from controlplane.ports.clusters import ClusterAdapter, DownloadingCluster
from controlplane.ports.launches import InputArtifact, Launch

#: Stands for the teams without retention rules of their own, in paths.
OTHER_TEAMS = "others"


@cache
def _cached_artifact_store(kind: str, options: str) -> ArtifactStore:
    return adapter_registry.artifact_store(kind, json.loads(options))


def artifact_store() -> ArtifactStore:
    return artifact_store_of_kind(settings.NINEFOLD_ARTIFACTS)


def artifact_store_of_kind(kind: str) -> ArtifactStore:
    """The configured store of that kind, whether or not artifacts are stored there.

    :raises ValueError: if its options cannot be used, such as a missing bucket.
    """
    options = {"root": str(Path(settings.NINEFOLD_HOME, "artifacts"))}
    if kind == "s3":
        options = {"bucket": "", **settings.NINEFOLD_S3}
    return _cached_artifact_store(kind, json.dumps(options))


def launch_with_downloads(launch: Launch, *, cluster: ClusterAdapter) -> Launch:
    """The launch with presigned URLs of its inputs, if the cluster needs them and the store has them.

    With the authorities of such a store, which uploads of outputs need on any cluster.

    :raises BlobMissing: if the store has lost an input.
    :raises StorageUnavailable: if the store does not answer.
    """
    store = artifact_store()
    if not isinstance(store, SigningStore):
        return launch
    launch = launch.trusting(store.authorities)
    if (
        not launch.inputs
        or not isinstance(cluster, DownloadingCluster)
        or not cluster.downloads_inputs
    ):
        return launch
    digests = {digest for tree in launch.inputs for digest in tree.files.values()}
    return replace(launch, downloads={digest: store.download(digest) for digest in sorted(digests)})


def shared_or_team_filter(teams: QuerySet[Team], path: str) -> Q:
    return Q(**{f"{path}__in": teams}) | Q(**{f"{path}__isnull": True})


def input_tree(name: str, artifact: Artifact) -> InputArtifact:
    """The files of an artifact as the input of a launch.

    :raises BlobMissing: if its bytes have been removed.
    """
    if artifact.removed_at is not None:
        raise BlobMissing(
            "artifact.input.files_removed",
            "the files of {artifact} were removed on {date}: {reason}",
            artifact=name,
            date=f"{artifact.removed_at:%Y-%m-%d}",
            reason=artifact.deletion_reason,
        )
    return InputArtifact(name=name, files=artifact.tree)


def artifacts_visible(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """Artifacts of the user's teams and those shared with every team."""
    return Artifact.objects.filter(
        shared_or_team_filter(accounts.teams_visible(user), "team")
    ).select_related("team")


def code_archives_visible(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """Code archives that a script job may run."""
    return artifacts_visible(user).filter(
        kind=ArtifactKind.CODE, team__isnull=False, deleted_at=None, removed_at=None
    )


class ArtifactFileMissing(ReasonedError, LookupError):
    """The artifact has no file at that path."""


def artifact_file(artifact: Artifact, path: str) -> tuple[BinaryIO, int]:
    """The opened file and its size in bytes. The caller closes it.

    :raises ArtifactFileMissing: if there is no file at that path, or its bytes have been removed.
    :raises BlobMissing: if the store has lost it.
    """
    if artifact.removed_at is not None:
        raise ArtifactFileMissing(
            "artifact.files.removed",
            "the files were removed on {date}: {reason}",
            date=f"{artifact.removed_at:%Y-%m-%d}",
            reason=artifact.deletion_reason,
        )
    digest = artifact.tree.get(path)
    if digest is None:
        raise ArtifactFileMissing(
            "artifact.file.not_found",
            "file {path} does not exist; the artifact has {files}",
            path=repr(path),
            files=", ".join(artifact.tree),
        )
    store = artifact_store()
    return store.open(digest), store.size(digest)


def parse_json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


#: How long an artifact that a user deleted can be restored.
RESTORE_WINDOW = timedelta(days=7)
LARGEST_SHOWN = 50

KIND_OF: Mapping[str, StorageKind] = {
    ArtifactKind.DATASET: StorageKind.DATASETS,
    ArtifactKind.MODEL: StorageKind.VERSIONS,
    ArtifactKind.CODE: StorageKind.JOB_FILES,
    ArtifactKind.REPORT: StorageKind.JOB_FILES,
    ArtifactKind.OUTPUTS: StorageKind.JOB_FILES,
}


def storage_usage_of_team(team: Team) -> StorageUse:
    """Current usage of one team."""
    return storage_usage_by_team([team.pk])[team.pk]


def storage_usage_by_team(team_keys: Iterable[int]) -> dict[int, StorageUse]:
    """Usage of each team by primary key: everything charged to it, including deleted artifacts that can still be
    restored.
    """
    keys = list(team_keys)
    sums: dict[int, dict[StorageKind, int]] = {key: dict.fromkeys(StorageKind, 0) for key in keys}
    for team, kind, size in _storage_charges(keys):
        sums[team][kind] += size
    limits = dict(StorageQuota.objects.filter(team__in=keys).values_list("team_id", "limit"))
    return {key: StorageUse(by_kind=sums[key], limit=limits.get(key)) for key in keys}


def _storage_charges(keys: list[int]) -> Iterator[tuple[int, StorageKind, int]]:
    artifacts = Artifact.objects.filter(team__in=keys, removed_at=None).order_by()
    for team, kind, size in artifacts.values_list("team_id", "kind").annotate(total=Sum("size")):
        yield team, KIND_OF[kind], size
    measures = StorageMeasure.objects.filter(team__in=keys).order_by()
    for team, kind, size in measures.values_list("team_id", "kind").annotate(total=Sum("size")):
        yield team, StorageKind(kind), size
    requested_teams = frozenset(keys)
    for consumer in storage_consumers():
        yield from (charge for charge in consumer.usage() if charge[0] in requested_teams)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamStorage:
    team: Team
    use: StorageUse
    #: Bytes of deleted artifacts that can still be restored.
    deleted: int


def visible_team_storage(user: accounts.RequestUser) -> list[TeamStorage]:
    """Usage of each team that the user may see, largest first."""
    teams = list(accounts.teams_visible(user))
    uses = storage_usage_by_team([team.pk for team in teams])
    deleted = dict(
        Artifact.objects.filter(team__in=teams, removed_at=None, deleted_at__isnull=False)
        .order_by()
        .values_list("team_id")
        .annotate(total=Sum("size"))
    )
    rows = [
        TeamStorage(team=team, use=uses[team.pk], deleted=deleted.get(team.pk, 0)) for team in teams
    ]
    return sorted(rows, key=lambda row: (-row.use.used, row.team.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatistics:
    """The whole store: bytes charged to teams, and bytes on disk."""

    logical: int
    physical: int | None
    blobs: int | None
    set_aside: int | None
    counted_at: datetime | None

    @property
    def shared(self) -> int | None:
        """Bytes that are charged more than once, because equal content is stored once."""
        return None if self.physical is None else max(0, self.logical - self.physical)


def store_statistics() -> StoreStatistics:
    logical = Artifact.objects.filter(removed_at=None).aggregate(total=Sum("size"))["total"] or 0
    size = StoreSize.objects.first()
    return StoreStatistics(
        logical=logical,
        physical=size.size - size.set_aside if size else None,
        blobs=size.blobs if size else None,
        set_aside=size.set_aside if size else None,
        counted_at=size.counted_at if size else None,
    )


def artifacts_with_bytes(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """Artifacts whose bytes are stored, largest first, with the version or evaluation that owns them."""
    return (
        artifacts_visible(user)
        .filter(removed_at=None, deleted_at=None)
        .select_related(
            "modelversion__line",
            "datasetversion__dataset",
            "evaluation__model_version__line",
            "evaluation__dataset_version__dataset",
            "team",
        )
        .defer("datasetversion__statistics", "datasetversion__preview", "files")
        .order_by("-size", "-pk")
    )


def artifacts_deleted(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """Deleted artifacts that can still be restored, the next to expire first."""
    return (
        artifacts_visible(user)
        .filter(removed_at=None, deleted_at__isnull=False)
        .select_related("modelversion__line", "datasetversion__dataset", "team")
        .defer("datasetversion__statistics", "datasetversion__preview", "files")
        .order_by("deleted_at")
    )


def artifact_title(artifact: Artifact) -> str:
    """Name of the version or evaluation that owns it, or else its kind."""
    for name in ("modelversion", "datasetversion"):
        version = getattr(artifact, name, None)
        if version is not None:
            return str(version)
    evaluation = getattr(artifact, "evaluation", None)
    return (
        Reason("artifact.title.evaluation_report", "report of {evaluation}", evaluation=evaluation)
        if evaluation is not None
        else str(artifact)
    )


def artifact_owner(artifact: Artifact) -> Team | None:
    """The team that may delete it; None if it is shared with every team, whichever team is charged."""
    version = ModelVersion.objects.filter(artifact=artifact).select_related("line__team").first()
    return artifact.team if version is None else version.line.team


def retention_holds(*, at: datetime) -> dict[int, list[str]]:
    """Reasons why retention rules must keep artifacts, by primary key."""
    found: dict[int, list[str]] = defaultdict(list)
    for consumer in storage_consumers():
        for key, hold in consumer.holds(at=at).items():
            found[key].append(hold.reason)
    return found


def deletion_blockers(artifact: Artifact, *, at: datetime, by_rule: bool = False) -> list[str]:
    """Reasons why a user, or a rule, cannot delete it; empty if nothing prevents it."""
    return deletion_blockers_by_artifact([artifact], at=at, by_rule=by_rule).get(artifact.pk, [])


def deletion_blockers_by_artifact(
    artifacts: Collection[Artifact], *, at: datetime, by_rule: bool = False
) -> dict[int, list[str]]:
    """The same for artifacts that are deleted together, by primary key; without those that nothing prevents."""
    found: dict[int, list[str]] = defaultdict(list)
    keys = [artifact.pk for artifact in artifacts]
    for consumer in storage_consumers():
        for key, hold in consumer.holds(at=at, of=keys).items():
            if hold.firm or by_rule:
                found[key].append(hold.reason)
    for artifact in artifacts:
        if artifact.pinned_at is not None:
            found[artifact.pk].append("it is pinned")
    adapters = ModelVersion.objects.filter(
        base__artifact__in=keys,
        artifact__removed_at=None,
        artifact__files__contains=[{"path": ADAPTER_FILE}],
    ).exclude(artifact__in=keys)
    for derived in adapters.select_related("line", "base").order_by("-id"):
        if derived.base is not None and derived.base.artifact_id is not None:
            found[derived.base.artifact_id].append(f"{derived} cannot be loaded without it")
    return dict(found)


#: A version with this file is a LoRA adapter and needs its base's weights.
ADAPTER_FILE = "adapter_config.json"


def versions_required_to_load(version: ModelVersion) -> frozenset[str]:
    """Uids of the versions without whose bytes it cannot be loaded."""
    artifact, base = version.artifact, version.base
    if artifact is None or base is None:
        return frozenset()
    return frozenset({base.uid}) if ADAPTER_FILE in artifact.tree else frozenset()


def retention_rules_by_team() -> tuple[dict[str, RetentionRules], RetentionRules]:
    """Retention rules of the teams that have their own, by uid, and the default rules of all others."""
    own: dict[str, RetentionRules] = {}
    default = RetentionRules()
    for row in RetentionRule.objects.select_related("team"):
        if row.team is None:
            default = _retention_rules_from_row(row)
        else:
            own[row.team.uid] = _retention_rules_from_row(row)
    return own, default


def retention_rules_visible(user: accounts.RequestUser) -> QuerySet[RetentionRule]:
    """Return the default rules, if they were set, and those of the user's teams by name.

    ``rules_of`` identifies them: uid of the team, or :data:`OTHER_TEAMS`.
    """
    rows = RetentionRule.objects.filter(
        Q(team=None) | Q(team__in=accounts.teams_visible(user))
    ).annotate(rules_of=Coalesce("team__uid", Value(OTHER_TEAMS)))
    return rows.select_related("team").order_by(F("team__name").asc(nulls_first=True), "pk")


def _retention_rules_from_row(row: RetentionRule) -> RetentionRules:
    return RetentionRules(**{each.name: getattr(row, each.name) for each in fields(RetentionRules)})


def checkpoint_retention(*, default: timedelta) -> tuple[dict[int, timedelta], timedelta]:
    """How long working folders of ended attempts are kept: by the team's primary key, and for all others.

    ``default`` applies to teams without a rule.
    """
    own: dict[int, timedelta] = {}
    others = default
    for row in RetentionRule.objects.all():
        days = row.checkpoint_days if row.enabled else None
        retention = default if days is None else timedelta(days=days)
        if row.team_id is None:
            others = retention
        else:
            own[row.team_id] = retention
    return own, others


def storage_runs_visible(user: accounts.RequestUser) -> QuerySet[StorageRun]:
    """Retention and garbage-collection runs; only company administrators see them."""
    if accounts.is_company_administrator(user):
        return StorageRun.objects.all()
    return StorageRun.objects.none()


def digests_referenced() -> Iterator[str]:
    """Every blob that a row of any app references, including repetitions."""
    rows = Artifact.objects.filter(removed_at=None).order_by("pk")
    for files in rows.values_list("files", flat=True).iterator(chunk_size=200):
        yield from (file["digest"] for file in files)
    imports = HubImport.objects.filter(version__artifact=None).order_by("pk")
    for stored in imports.values_list("stored", flat=True).iterator(chunk_size=200):
        yield from (digest for _, digest, _ in stored)
    for consumer in storage_consumers():
        yield from consumer.digests()


def artifacts_past_restore_window(*, at: datetime) -> QuerySet[Artifact]:
    """Deleted artifacts that can no longer be restored."""
    return Artifact.objects.filter(removed_at=None, deleted_at__lte=at - RESTORE_WINDOW).order_by(
        F("deleted_at")
    )


_KINDS = {
    RetentionItemKind.CHECKPOINTS: StorageKind.CHECKPOINTS,
    RetentionItemKind.UPLOADS: StorageKind.JOB_FILES,
    RetentionItemKind.LOG: StorageKind.LOGS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """An artifact or an item of an attempt, with its size, for lists."""

    kind: StorageKind
    name: str
    #: None if it is shared with every team.
    team: str | None
    size: int
    at: datetime | None
    #: Uid of the artifact or of the attempt.
    uid: str
    #: The item of an attempt; None for an artifact.
    item: RetentionItem | None = None
    pinned: bool = False
    #: URL name and uid of the page that shows it; empty if there is none.
    page: str = ""
    page_uid: str = ""
    #: For a deleted artifact: when it expires, and who deleted it.
    undo_until: datetime | None = None
    deleted_by: str = ""


def largest_stored_items(
    user: accounts.RequestUser, *, count: int = LARGEST_SHOWN
) -> list[StoredItem]:
    """The largest items of the user's teams, largest first."""
    artifacts = _items_from_artifacts(list(artifacts_with_bytes(user)[:count]))
    teams = list(accounts.teams_visible(user))
    names = {team.uid: team.name for team in teams}
    left = [
        _item_from_attempt(item, team=names[item.team])
        for consumer in storage_consumers()
        for item in consumer.largest_items(teams=[team.pk for team in teams], count=count)
        if item.size
    ]
    return sorted([*artifacts, *left], key=lambda item: -item.size)[:count]


def deleted_items(user: accounts.RequestUser) -> list[StoredItem]:
    """Deleted artifacts that can still be restored, the next to expire first."""
    return _items_from_artifacts(list(artifacts_deleted(user)))


def attempt_storage_item(
    kind: RetentionItemKind, uid: str, *, user: accounts.RequestUser
) -> RetentionItem | None:
    """An item of an attempt of one of the user's teams; None if there is none."""
    teams = frozenset(accounts.teams_visible(user).values_list("uid", flat=True))
    found = (
        item
        for consumer in storage_consumers()
        for item in consumer.items_of_attempt(uid)
        if item.kind is kind and item.team in teams
    )
    return next(found, None)


def _items_from_artifacts(artifacts: Sequence[Artifact]) -> list[StoredItem]:
    uids = [_attempt_uid(artifact) for artifact in artifacts]
    attempt_labels = {
        uid: label
        for consumer in storage_consumers()
        for uid, label in consumer.attempt_labels(uids).items()
    }
    return [_item_from_artifact(artifact, attempt_labels) for artifact in artifacts]


def _attempt_uid(artifact: Artifact) -> str:
    """Uid of the attempt that created it; empty if none did."""
    creator, _, uid = (artifact.created_by or "").partition(":")
    return uid if creator == "attempt" else ""


def _item_from_artifact(
    artifact: Artifact, attempt_labels: Mapping[str, tuple[str, str]]
) -> StoredItem:
    name, page, page_uid = artifact_title(artifact), *_artifact_page_and_uid(artifact)
    if not page and (label := attempt_labels.get(_attempt_uid(artifact))) is not None:
        name, page, page_uid = label[0], "job", label[1]
    deleted = artifact.deleted_at
    return StoredItem(
        kind=KIND_OF[artifact.kind],
        name=name,
        team=artifact.team.name if artifact.team else None,
        size=artifact.size,
        at=artifact.created_at,
        uid=artifact.uid,
        pinned=artifact.pinned_at is not None,
        page=page,
        page_uid=page_uid,
        undo_until=deleted + RESTORE_WINDOW if deleted else None,
        deleted_by=artifact.deleted_by,
    )


def _artifact_page_and_uid(artifact: Artifact) -> tuple[str, str]:
    for relation, page in (
        ("modelversion", "model-version"),
        ("datasetversion", "dataset-version"),
    ):
        version = getattr(artifact, relation, None)
        if version is not None:
            return page, version.uid
    return "", ""


def _item_from_attempt(item: RetentionItem, *, team: str) -> StoredItem:
    return StoredItem(
        kind=_KINDS[item.kind],
        name=item.name,
        team=team,
        size=item.size,
        at=item.at,
        uid=item.uid,
        item=item,
        page="job",
        page_uid=item.series,
    )
