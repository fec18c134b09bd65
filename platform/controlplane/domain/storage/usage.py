"""Storage usage of teams, and their storage quotas.

Blobs are deduplicated by content: a base model that three teams imported is stored once. Each team is nevertheless
charged the whole size of what it owns (its *logical* size), because a blob stays on disk while another team needs
it.
"""

from __future__ import annotations

from dataclasses import dataclass
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
