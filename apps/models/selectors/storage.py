"""Questions about storage: who uses how much, of what, and what stands in the way of deleting it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, QuerySet, Sum

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.models import (
    Artifact,
    HubImport,
    ModelVersion,
    RetentionRule,
    StorageMeasure,
    StorageQuota,
    StorageRun,
    StoreSize,
)
from apps.models.selectors import artifacts_visible
from apps.models.selectors.sources import sources
from controlplane.domain.storage.retention import RetentionRules
from controlplane.domain.storage.usage import StorageKind, StorageUse

#: How long what a person deleted can be had back.
UNDO_WITHIN = timedelta(days=7)
BIGGEST = 50

KIND_OF: Mapping[str, StorageKind] = {
    Artifact.Kind.DATASET: StorageKind.DATASETS,
    Artifact.Kind.MODEL: StorageKind.VERSIONS,
    Artifact.Kind.CODE: StorageKind.JOB_FILES,
    Artifact.Kind.REPORT: StorageKind.JOB_FILES,
    Artifact.Kind.OUTPUTS: StorageKind.JOB_FILES,
}


def storage_use(team: Team) -> StorageUse:
    """Of one team, now."""
    return storage_uses([team.pk])[team.pk]


def storage_uses(team_keys: Iterable[int]) -> dict[int, StorageUse]:
    """Of each of those teams, by primary key: everything charged to it, deleted things that can be
    had back included."""
    keys = list(team_keys)
    sums: dict[int, dict[StorageKind, int]] = {key: dict.fromkeys(StorageKind, 0) for key in keys}
    for team, kind, size in _charges(keys):
        sums[team][kind] += size
    limits = dict(StorageQuota.objects.filter(team__in=keys).values_list("team_id", "limit"))
    return {key: StorageUse(by_kind=sums[key], limit=limits.get(key)) for key in keys}


def _charges(keys: list[int]) -> Iterator[tuple[int, StorageKind, int]]:
    artifacts = Artifact.objects.filter(team__in=keys, removed_at=None).order_by()
    for team, kind, size in artifacts.values_list("team_id", "kind").annotate(total=Sum("size")):
        yield team, KIND_OF[kind], size
    measures = StorageMeasure.objects.filter(team__in=keys).order_by()
    for team, kind, size in measures.values_list("team_id", "kind").annotate(total=Sum("size")):
        yield team, StorageKind(kind), size
    wanted = frozenset(keys)
    for source in sources():
        yield from (charge for charge in source.uses() if charge[0] in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamStorage:
    team: Team
    use: StorageUse
    #: Bytes of what is deleted and not gone yet.
    deleted: int


def storage_by_team(user: accounts.RequestUser) -> list[TeamStorage]:
    """Of each team that they may see, the fullest first."""
    teams = list(accounts.teams_of(user))
    uses = storage_uses([team.pk for team in teams])
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
class StoreFigures:
    """The whole store: what is charged to everybody, and what lies on disk for it."""

    logical: int
    physical: int | None
    blobs: int | None
    set_aside: int | None
    counted_at: datetime | None

    @property
    def shared(self) -> int | None:
        """Bytes that are charged more than once, because equal content lies on disk once."""
        return None if self.physical is None else max(0, self.logical - self.physical)


def store_figures() -> StoreFigures:
    logical = Artifact.objects.filter(removed_at=None).aggregate(total=Sum("size"))["total"] or 0
    size = StoreSize.objects.first()
    return StoreFigures(
        logical=logical,
        physical=size.size - size.set_aside if size else None,
        blobs=size.blobs if size else None,
        set_aside=size.set_aside if size else None,
        counted_at=size.counted_at if size else None,
    )


def artifacts_with_bytes(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """The largest first, with what they are the bytes of."""
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
    """What can still be had back, what goes first at the top."""
    return (
        artifacts_visible(user)
        .filter(removed_at=None, deleted_at__isnull=False)
        .select_related("modelversion__line", "datasetversion__dataset", "team")
        .defer("datasetversion__statistics", "datasetversion__preview", "files")
        .order_by("deleted_at")
    )


def title_of(artifact: Artifact) -> str:
    """What people call it: the version that it is, or else its kind."""
    for name in ("modelversion", "datasetversion"):
        version = getattr(artifact, name, None)
        if version is not None:
            return str(version)
    evaluation = getattr(artifact, "evaluation", None)
    return f"report of {evaluation}" if evaluation is not None else str(artifact)


def owner_of(artifact: Artifact) -> Team | None:
    """Who decides about it; None where every team may rely on it, whichever is charged for it."""
    version = ModelVersion.objects.filter(artifact=artifact).select_related("line__team").first()
    return artifact.team if version is None else version.line.team


def holds(*, at: datetime) -> dict[int, list[str]]:
    """Why artifacts must stay whatever a rule says, by their primary key."""
    found: dict[int, list[str]] = defaultdict(list)
    for source in sources():
        for key, hold in source.holds(at=at).items():
            found[key].append(hold.reason)
    return found


def obstacles(artifact: Artifact, *, at: datetime, by_rule: bool = False) -> list[str]:
    """What keeps a person, or a rule, from deleting it, in words; empty if nothing does."""
    found = [
        hold.reason
        for source in sources()
        for hold in source.holds(at=at, of=[artifact.pk]).values()
        if hold.firm or by_rule
    ]
    if artifact.pinned_at is not None:
        found.append("it is pinned")
    version = ModelVersion.objects.filter(artifact=artifact).first()
    if version is not None:
        needing = version.derived.filter(
            artifact__removed_at=None, artifact__files__contains=[{"path": ADAPTER_FILE}]
        ).select_related("line")
        found += [f"{derived} cannot be loaded without it" for derived in needing]
    return found


#: At the top of a version's files: its weights are a difference from those of its base.
ADAPTER_FILE = "adapter_config.json"


def needs_of(version: ModelVersion) -> frozenset[str]:
    """Uids of the versions without whose bytes it cannot be loaded."""
    artifact, base = version.artifact, version.base
    if artifact is None or base is None:
        return frozenset()
    return frozenset({base.uid}) if ADAPTER_FILE in artifact.tree else frozenset()


def rules_by_team() -> tuple[dict[str, RetentionRules], RetentionRules]:
    """The rules of the teams that have their own, by uid, and those of all others."""
    own: dict[str, RetentionRules] = {}
    default = RetentionRules()
    for row in RetentionRule.objects.select_related("team"):
        if row.team is None:
            default = rules_of(row)
        else:
            own[row.team.uid] = rules_of(row)
    return own, default


def rules_of(row: RetentionRule) -> RetentionRules:
    return RetentionRules(
        enabled=row.enabled,
        keep_versions=row.keep_versions,
        checkpoint_days=row.checkpoint_days,
        failed_days=row.failed_days,
        log_days=row.log_days,
    )


def checkpoints_kept(*, default: timedelta) -> tuple[dict[int, timedelta], timedelta]:
    """How long working folders of ended attempts are kept, by the team's primary key, and by all others.

    ``default`` is for teams to which no rule applies.
    """
    own: dict[int, timedelta] = {}
    others = default
    for row in RetentionRule.objects.all():
        days = row.checkpoint_days if row.enabled else None
        kept = default if days is None else timedelta(days=days)
        if row.team_id is None:
            others = kept
        else:
            own[row.team_id] = kept
    return own, others


def runs_visible(user: accounts.RequestUser) -> QuerySet[StorageRun]:
    """Past rounds, for those who look after the whole company."""
    if accounts.is_company_administrator(user):
        return StorageRun.objects.all()
    return StorageRun.objects.none()


def digests_referenced() -> Iterator[str]:
    """Every blob that a row of any app names, repetitions included."""
    rows = Artifact.objects.filter(removed_at=None).order_by("pk")
    for files in rows.values_list("files", flat=True).iterator(chunk_size=200):
        yield from (file["digest"] for file in files)
    arriving = HubImport.objects.filter(version__artifact=None).order_by("pk")
    for stored in arriving.values_list("stored", flat=True).iterator(chunk_size=200):
        yield from (digest for _, digest, _ in stored)
    for source in sources():
        yield from source.digests()


def expired(*, at: datetime) -> QuerySet[Artifact]:
    """Deleted things that can no longer be had back."""
    return Artifact.objects.filter(removed_at=None, deleted_at__lte=at - UNDO_WITHIN).order_by(
        F("deleted_at")
    )
