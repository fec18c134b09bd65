"""How storage is drawn and named: bars by kind, and reasons in the reader's language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.models.selectors.storage import TeamStorage
from controlplane.domain.storage.retention import Removal, RuleCode
from controlplane.domain.storage.usage import StorageKind

#: Of a bar, in units of its drawing.
WIDTH = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    kind: StorageKind
    size: int
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What one team uses, drawn against its quota, or against the fullest team where it has none."""

    row: TeamStorage
    segments: tuple[Segment, ...]
    #: Percent of the quota; None without one.
    percent: float | None


def kind_names() -> dict[str, str]:
    return {
        StorageKind.DATASETS: _("Datasets"),
        StorageKind.VERSIONS: _("Model versions"),
        StorageKind.CHECKPOINTS: _("Checkpoints"),
        StorageKind.JOB_FILES: _("Job files"),
        StorageKind.LOGS: _("Logs"),
    }


def bars_of(rows: Sequence[TeamStorage]) -> list[Bar]:
    fullest = max((row.use.used for row in rows), default=0)
    return [_bar(row, fullest=fullest) for row in rows]


def _bar(row: TeamStorage, *, fullest: int) -> Bar:
    whole = max(row.use.limit or 0, row.use.used) if row.use.limit is not None else fullest
    segments, x = [], 0.0
    for kind, size in row.use.by_kind.items():
        width = WIDTH * size / whole if whole else 0.0
        if width:
            segments.append(Segment(kind=kind, size=size, x=round(x, 2), width=round(width, 2)))
        x += width
    return Bar(
        row=row,
        segments=tuple(segments),
        percent=None if row.use.limit is None else 100 * row.use.share,
    )


def reason_of(removal: Removal) -> str:
    """Which rule takes it, in the reader's language."""
    kept = removal.limit
    match removal.rule:
        case RuleCode.NEWEST_VERSIONS:
            return ngettext(
                "only the newest version of each model is kept",
                "only the newest %(kept)d versions of each model are kept",
                kept,
            ) % {"kept": kept}
        case RuleCode.CHECKPOINT_DAYS:
            return _("checkpoints are kept for %(kept)d days after their run") % {"kept": kept}
        case RuleCode.FAILED_DAYS:
            return _("files of failed runs are kept for %(kept)d days") % {"kept": kept}
        case RuleCode.LOG_DAYS:
            return _("logs are kept for %(kept)d days after their run") % {"kept": kept}
        case RuleCode.UNLISTED:
            return _("the run has ended and nothing lists these files")
