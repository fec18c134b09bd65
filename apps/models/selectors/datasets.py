"""Questions about datasets and their versions, as their pages ask them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from django.db.models import Count, F, OuterRef, QuerySet, Subquery

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.models import Artifact, Dataset, DatasetVersion, ModelVersion
from apps.models.selectors import artifact_store, model_versions_visible
from controlplane.ports.artifacts import BlobMissing

#: Larger versions are not compared row by row for a page. Bytes.
MOST_COMPARED = 16 << 20


def versions_listed(dataset: Dataset) -> QuerySet[DatasetVersion]:
    """Its versions without their rows' figures, each with ``grown``: how many rows more it has than
    the one before it, None for the first; how many models were ``tuned`` on it and ``measured`` on it."""
    before = DatasetVersion.objects.filter(
        dataset=OuterRef("dataset"), number__lt=OuterRef("number")
    ).order_by("-number")
    return (
        DatasetVersion.objects.filter(dataset=dataset)
        .defer("statistics", "preview")
        .select_related("artifact", "created_by", "dataset")
        .annotate(
            grown=F("row_count") - Subquery(before.values("row_count")[:1]),
            tuned=Count("models", distinct=True),
            measured=Count("evaluations", distinct=True),
        )
    )


def version_before(version: DatasetVersion) -> DatasetVersion | None:
    """The version that it followed; None for the first."""
    earlier = DatasetVersion.objects.filter(
        dataset=version.dataset_id, number__lt=version.number
    ).defer("statistics", "preview")
    return earlier.select_related("artifact", "dataset").order_by("-number").first()


def models_made_from(
    version: DatasetVersion, *, user: accounts.RequestUser
) -> QuerySet[ModelVersion]:
    """Those that they may see, the newest first."""
    return model_versions_visible(user).filter(dataset_version=version).order_by("-id")


def next_number(*, team: Team, name: str) -> int:
    """The number that the next version of that dataset will get; 1 where there is no such dataset."""
    known = DatasetVersion.objects.filter(dataset__team=team, dataset__name=name)
    last = known.order_by("-number").values_list("number", flat=True).first()
    return (last or 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """What became of the rows between two versions, whatever their splits."""

    added: int
    removed: int


def rows_changed(older: DatasetVersion, newer: DatasetVersion) -> RowChanges | None:
    """None where that would take long, or where the rows of one are no longer here."""
    artifacts = (older.artifact, newer.artifact)
    if any(one.removed_at is not None or one.size > MOST_COMPARED for one in artifacts):
        return None
    try:
        return _changes(_blobs(older.artifact), _blobs(newer.artifact))
    except BlobMissing:
        return None


def _blobs(artifact: Artifact) -> tuple[str, ...]:
    return tuple(sorted(artifact.tree.values()))


@lru_cache(maxsize=256)
def _changes(older: tuple[str, ...], newer: tuple[str, ...]) -> RowChanges:
    """By digest, so what was counted once is right for ever."""
    before, after = _rows_of(older), _rows_of(newer)
    return RowChanges(added=(after - before).total(), removed=(before - after).total())


def _rows_of(blobs: tuple[str, ...]) -> Counter[bytes]:
    store = artifact_store()
    rows: Counter[bytes] = Counter()
    for digest in blobs:
        with store.open(digest) as stream:
            rows.update(blake2b(line, digest_size=12).digest() for line in stream)
    return rows
