"""Who fills the artifact store: what is counted, against which limit, and when that is too much.

Blobs are shared by content: the same base model that three teams imported lies on disk once. Each team is
nevertheless charged the whole size of what it owns (its *logical* size), because what one team deletes
does not shrink while another still needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controlplane.domain.resources import bytes_in_words


class StorageKind(StrEnum):
    """What the bytes are."""

    DATASETS = "datasets"
    VERSIONS = "versions"
    #: Working folders of ended attempts, from which a retry goes on.
    CHECKPOINTS = "checkpoints"
    #: What jobs made beside models, what they handed over, and the code that people sent for them.
    JOB_FILES = "job_files"
    LOGS = "logs"


KIND_NAMES = {
    StorageKind.DATASETS: "datasets",
    StorageKind.VERSIONS: "model versions",
    StorageKind.CHECKPOINTS: "checkpoints",
    StorageKind.JOB_FILES: "job files",
    StorageKind.LOGS: "logs",
}

#: Share of the limit from which on people are warned.
WARNING_SHARE = 0.8


class StorageLevel(StrEnum):
    UNLIMITED = "unlimited"
    ROOMY = "roomy"
    NEAR = "near"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageUse:
    """What one team uses, in bytes, and may use; no limit is None."""

    by_kind: dict[StorageKind, int]
    limit: int | None

    @property
    def used(self) -> int:
        return sum(self.by_kind.values())

    @property
    def share(self) -> float:
        """Of the limit; 0 where there is none."""
        if self.limit is None:
            return 0.0
        return self.used / self.limit if self.limit else 1.0

    @property
    def level(self) -> StorageLevel:
        if self.limit is None:
            return StorageLevel.UNLIMITED
        if self.used >= self.limit:
            return StorageLevel.FULL
        return StorageLevel.NEAR if self.share >= WARNING_SHARE else StorageLevel.ROOMY

    @property
    def largest_kinds(self) -> list[tuple[StorageKind, int]]:
        """Kinds that take anything, the largest first."""
        filled = [(kind, size) for kind, size in self.by_kind.items() if size]
        return sorted(filled, key=lambda pair: -pair[1])

    def fits(self, size: int) -> bool:
        """Whether so many bytes more stay within the limit."""
        return self.limit is None or self.used + size <= self.limit


class StorageQuotaExceeded(Exception):
    """The team may not store more; the message says what fills its quota and what to do."""

    def __init__(self, *, team: str, use: StorageUse, wanted: int | None) -> None:
        super().__init__(_refusal(team=team, use=use, wanted=wanted))
        self.use = use
        self.wanted = wanted


def _refusal(*, team: str, use: StorageUse, wanted: int | None) -> str:
    filled = ", ".join(
        f"{KIND_NAMES[kind]} {bytes_in_words(size)}" for kind, size in use.largest_kinds[:3]
    )
    used, limit = bytes_in_words(use.used), bytes_in_words(use.limit or 0)
    by_what = filled or "nothing yet"
    if wanted is None:
        return (
            f"team {team} uses {used} of its {limit} of storage ({by_what}). Delete what is no longer "
            "needed on the storage page, or ask an administrator of the company for a larger quota"
        )
    return (
        f"this needs {bytes_in_words(wanted)} more; team {team} uses {used} of its {limit} of storage "
        f"({by_what}). Delete what is no longer needed on the storage page, or ask an administrator "
        "of the company for a larger quota"
    )
