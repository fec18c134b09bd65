"""Storage of teams: usage and quota, and the retention rules by which artifacts are removed.

::

    items ──▶ usage by team and kind ──▶ quota: is there space for more?
      └─────▶ candidates of a rule ──▶ minus held, pinned, or needed by an item that stays ──▶ removals

Blobs are deduplicated by content: a base model that three teams imported is stored once. Each team is nevertheless
charged the whole size of what it owns (its *logical* size), because a blob stays on disk while another team needs
it.

The planner of retention gets all items that a rule could remove, with the reasons that hold them, and returns the
removals with their rules. It is a pure function, so that the dry run and the run are the same call. Database rows
stay: a version whose files are removed keeps its metadata and lineage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.domain.common.reasons import NONE, Reason
from controlplane.domain.common.resources import format_bytes


class StorageKind(StrEnum):
    """Category of stored data."""

    DATASETS = "datasets"
    VERSIONS = "versions"
    #: Working folders of ended attempts, from which a retry continues.
    CHECKPOINTS = "checkpoints"
    #: Outputs of jobs other than models, their uploads, and uploaded code.
    JOB_FILES = "job_files"
    LOGS = "logs"


KIND_NAMES = {
    StorageKind.DATASETS: "datasets",
    StorageKind.VERSIONS: "model versions",
    StorageKind.CHECKPOINTS: "checkpoints",
    StorageKind.JOB_FILES: "job files",
    StorageKind.LOGS: "logs",
}

#: Share of the limit above which users are warned.
WARNING_SHARE = 0.8


class StorageQuotaLevel(StrEnum):
    UNLIMITED = "unlimited"
    ROOMY = "roomy"
    NEAR = "near"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageUse:
    """Storage usage of one team by kind and its limit, in bytes; None for no limit."""

    by_kind: dict[StorageKind, int]
    limit: int | None

    @property
    def used(self) -> int:
        return sum(self.by_kind.values())

    @property
    def share(self) -> float:
        """Usage as a share of the limit; 0 without a limit."""
        if self.limit is None:
            return 0.0
        return self.used / self.limit if self.limit else 1.0

    @property
    def level(self) -> StorageQuotaLevel:
        if self.limit is None:
            return StorageQuotaLevel.UNLIMITED
        if self.used >= self.limit:
            return StorageQuotaLevel.FULL
        return StorageQuotaLevel.NEAR if self.share >= WARNING_SHARE else StorageQuotaLevel.ROOMY

    @property
    def largest_kinds(self) -> list[tuple[StorageKind, int]]:
        """Kinds with data, the largest first."""
        filled = [(kind, size) for kind, size in self.by_kind.items() if size]
        return sorted(filled, key=lambda pair: -pair[1])

    def fits(self, size: int) -> bool:
        """Whether ``size`` further bytes stay within the limit."""
        return self.limit is None or self.used + size <= self.limit


class StorageQuotaExceeded(Exception):
    """The storage quota of the team is exceeded; the message names the largest kinds and what to do."""

    def __init__(self, *, team: str, use: StorageUse, requested: int | None) -> None:
        super().__init__(_quota_exceeded_reason(team=team, use=use, requested=requested))
        self.use = use
        self.requested = requested


def _quota_exceeded_reason(*, team: str, use: StorageUse, requested: int | None) -> str:
    filled = ", ".join(
        f"{KIND_NAMES[kind]} {format_bytes(size)}" for kind, size in use.largest_kinds[:3]
    )
    used, limit = format_bytes(use.used), format_bytes(use.limit or 0)
    by_what = filled or NONE
    if requested is None:
        return Reason(
            "storage.quota.exceeded",
            "team {team} uses {used} of its storage quota of {limit} ({usage}). "
            "Delete unneeded data on the storage page, or ask an administrator of "
            "the company for a larger quota",
            team=team,
            used=used,
            limit=limit,
            usage=by_what,
        )
    return Reason(
        "storage.quota.insufficient",
        "{requested} more storage is required; team {team} uses {used} of its "
        "quota of {limit} ({usage}). Delete unneeded data on the storage page, "
        "or ask an administrator of the company for a larger quota",
        requested=format_bytes(requested),
        team=team,
        used=used,
        limit=limit,
        usage=by_what,
    )


#: How long uploads that no manifest lists are retained, independent of the rules.
UNLISTED_RETENTION = timedelta(hours=24)


class RetentionItemKind(StrEnum):
    """Kinds of items that a rule can remove."""

    VERSION = "version"
    #: The working folder of an ended attempt.
    CHECKPOINTS = "checkpoints"
    #: Files that an attempt uploaded and that did not become outputs.
    UPLOADS = "uploads"
    LOG = "log"


class RetentionRuleCode(StrEnum):
    NEWEST_VERSIONS = "newest_versions"
    CHECKPOINT_DAYS = "checkpoint_days"
    FAILED_DAYS = "failed_days"
    LOG_DAYS = "log_days"
    UNLISTED = "unlisted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """Retention rules of one team; None disables a rule."""

    enabled: bool = False
    #: Number of newest versions of each model to retain.
    keep_versions: int | None = None
    #: Days after the end of an attempt.
    checkpoint_days: int | None = None
    failed_days: int | None = None
    log_days: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionItem:
    """A removable item with stored bytes."""

    kind: RetentionItemKind
    uid: str
    name: str
    #: Uid of the owner; empty where it belongs to every team.
    team: str
    size: int
    #: When a version was created, or when the attempt of another item ended; None while that runs.
    at: datetime | None
    #: The model of a version, and its number; for other items the uid of the job.
    series: str = ""
    number: int = 0
    pinned: bool = False
    #: Why it cannot be removed now ("job x runs with it"); empty if nothing holds it.
    held: str = ""
    #: Uids of versions whose files it needs to be loaded.
    needs: frozenset[str] = frozenset()
    #: Whether the attempt of uploads did not succeed.
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRemoval:
    """One removal with its rule and the rule's limit: the number of versions or days that are retained."""

    item: RetentionItem
    rule: RetentionRuleCode
    limit: int

    @property
    def reason(self) -> str:
        match self.rule:
            case RetentionRuleCode.NEWEST_VERSIONS:
                return Reason(
                    "artifact.retention.newest_versions",
                    "only the newest {count} versions of each model are kept",
                    count=self.limit,
                )
            case RetentionRuleCode.CHECKPOINT_DAYS:
                return Reason(
                    "artifact.retention.checkpoints",
                    "checkpoints are kept for {days} days after their run",
                    days=self.limit,
                )
            case RetentionRuleCode.FAILED_DAYS:
                return Reason(
                    "artifact.retention.failed_runs",
                    "files of failed runs are kept for {days} days",
                    days=self.limit,
                )
            case RetentionRuleCode.LOG_DAYS:
                return Reason(
                    "artifact.retention.logs",
                    "logs are kept for {days} days after their run",
                    days=self.limit,
                )
            case RetentionRuleCode.UNLISTED:
                return Reason(
                    "artifact.retention.unreferenced",
                    "the job has ended and no record references these files",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan:
    """Removals, the largest first, and candidates that are held, pinned or needed."""

    removals: tuple[RetentionRemoval, ...]
    spared: tuple[RetentionItem, ...]

    @property
    def size(self) -> int:
        """Bytes that are no longer charged; shared blobs stay on disk."""
        return sum(removal.item.size for removal in self.removals)

    def restricted(self, concerned: Callable[[RetentionItem], bool]) -> RetentionPlan:
        """The part of the plan that concerns those items."""
        return RetentionPlan(
            removals=tuple(each for each in self.removals if concerned(each.item)),
            spared=tuple(item for item in self.spared if concerned(item)),
        )


def plan_retention(
    items: Sequence[RetentionItem],
    *,
    rules: Mapping[str, RetentionRules],
    default: RetentionRules,
    at: datetime,
) -> RetentionPlan:
    """Plan the removals at that instant.

    Versions that belong to every team are never removed, because their users are not known.

    :param rules: by team.
    :param default: for teams without rules.
    """
    positions = _version_positions(items)
    chosen: dict[tuple[RetentionItemKind, str], RetentionRemoval] = {}
    spared: list[RetentionItem] = []
    for item in items:
        removal = _removal_candidate(
            item, rules.get(item.team, default), position=positions.get(item.uid, 0), at=at
        )
        if removal is None:
            continue
        if item.held or item.pinned:
            spared.append(item)
        else:
            chosen[item.kind, item.uid] = removal
    for uid in _needed_versions(items, removed=chosen.keys()):
        rescued = chosen.pop((RetentionItemKind.VERSION, uid), None)
        if rescued is not None:
            spared.append(rescued.item)
    return RetentionPlan(
        removals=tuple(sorted(chosen.values(), key=lambda one: (-one.item.size, one.item.uid))),
        spared=tuple(spared),
    )


def _version_positions(items: Iterable[RetentionItem]) -> dict[str, int]:
    """Position of each version in its model, 0 for the newest."""
    series: dict[str, list[RetentionItem]] = defaultdict(list)
    for item in items:
        if item.kind is RetentionItemKind.VERSION:
            series[item.series].append(item)
    return {
        item.uid: position
        for members in series.values()
        for position, item in enumerate(sorted(members, key=lambda one: -one.number))
    }


def _removal_candidate(
    item: RetentionItem, rules: RetentionRules, *, position: int, at: datetime
) -> RetentionRemoval | None:
    """The removal of an item by the rules, regardless of other items."""
    if item.kind is RetentionItemKind.VERSION:
        return _superseded_removal(item, rules, position=position)
    if item.kind is RetentionItemKind.UPLOADS and not item.failed:
        unlisted = item.at is not None and at - item.at >= UNLISTED_RETENTION
        return (
            RetentionRemoval(item=item, rule=RetentionRuleCode.UNLISTED, limit=0)
            if unlisted
            else None
        )
    rule, days = {
        RetentionItemKind.CHECKPOINTS: (RetentionRuleCode.CHECKPOINT_DAYS, rules.checkpoint_days),
        RetentionItemKind.LOG: (RetentionRuleCode.LOG_DAYS, rules.log_days),
        RetentionItemKind.UPLOADS: (RetentionRuleCode.FAILED_DAYS, rules.failed_days),
    }[item.kind]
    return _aged_removal(item, rule, days if rules.enabled else None, at=at)


def _superseded_removal(
    item: RetentionItem, rules: RetentionRules, *, position: int
) -> RetentionRemoval | None:
    limit = rules.keep_versions if rules.enabled and item.team else None
    if limit is None or position < max(1, limit):
        return None
    return RetentionRemoval(item=item, rule=RetentionRuleCode.NEWEST_VERSIONS, limit=max(1, limit))


def _aged_removal(
    item: RetentionItem, rule: RetentionRuleCode, days: int | None, *, at: datetime
) -> RetentionRemoval | None:
    if days is None or item.at is None or at - item.at < timedelta(days=days):
        return None
    return RetentionRemoval(item=item, rule=rule, limit=days)


def _needed_versions(
    items: Sequence[RetentionItem], *, removed: Collection[tuple[RetentionItemKind, str]]
) -> frozenset[str]:
    """Versions that items that stay need to be loaded, directly or indirectly."""
    needs = {item.uid: item.needs for item in items if item.kind is RetentionItemKind.VERSION}
    reached: set[str] = set()
    ahead = [uid for item in items if (item.kind, item.uid) not in removed for uid in item.needs]
    while ahead:
        uid = ahead.pop()
        if uid not in reached:
            reached.add(uid)
            ahead.extend(needs.get(uid, ()))
    return frozenset(reached)
