"""Datasets, their versions and the rows of a version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from django.db.models import Count, F, OuterRef, Prefetch, QuerySet, Subquery

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.models import (
    Dataset,
    DatasetVersion,
    ModelVersion,
)
from apps.models.selectors.model_versions import model_versions_visible
from apps.models.selectors.storage import (
    ArtifactFileMissing,
    artifact_file,
    artifact_store,
    parse_json_or_none,
)
from controlplane.ports.artifacts import BlobMissing

#: Bytes. Larger versions are not compared row by row.
MAX_COMPARED_SIZE = 16 << 20


def dataset_versions_with_counts(dataset: Dataset) -> QuerySet[DatasetVersion]:
    """Versions without statistics and preview, each annotated with ``grown`` (row count minus that of the previous
    version, None for the first) and with the numbers of model versions ``tuned`` and evaluations ``measured``
    on it.
    """
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


def previous_dataset_version(version: DatasetVersion) -> DatasetVersion | None:
    """The version before it; None for the first."""
    earlier = DatasetVersion.objects.filter(
        dataset=version.dataset_id, number__lt=version.number
    ).defer("statistics", "preview")
    return earlier.select_related("artifact", "dataset").order_by("-number").first()


def models_trained_on(
    version: DatasetVersion, *, user: accounts.RequestUser
) -> QuerySet[ModelVersion]:
    """Model versions trained on it that the user may see, newest first."""
    return model_versions_visible(user).filter(dataset_version=version).order_by("-id")


def next_version_number(*, team: Team, name: str) -> int:
    """The number that the next version of that dataset will get; 1 if the dataset does not exist."""
    known = DatasetVersion.objects.filter(
        dataset__team=team, dataset__name=name, dataset__deleted_at=None
    )
    last = known.order_by("-number").values_list("number", flat=True).first()
    return (last or 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRowChanges:
    """Numbers of rows added and removed between two versions, regardless of splits."""

    added: int
    removed: int


def dataset_row_changes(older: DatasetVersion, newer: DatasetVersion) -> DatasetRowChanges | None:
    """None if the comparison would take too long, or if the rows of one version have been removed."""
    artifacts = (older.artifact, newer.artifact)
    if any(one.removed_at is not None or one.size > MAX_COMPARED_SIZE for one in artifacts):
        return None
    try:
        before, after = (tuple(sorted(one.tree.values())) for one in artifacts)
        return _count_row_changes(before, after)
    except BlobMissing:
        return None


@lru_cache(maxsize=256)
def _count_row_changes(older: tuple[str, ...], newer: tuple[str, ...]) -> DatasetRowChanges:
    """Cached by digest: the content of a digest never changes."""
    before, after = _rows_of_split(older), _rows_of_split(newer)
    return DatasetRowChanges(added=(after - before).total(), removed=(before - after).total())


def _rows_of_split(blobs: tuple[str, ...]) -> Counter[bytes]:
    store = artifact_store()
    rows: Counter[bytes] = Counter()
    for digest in blobs:
        with store.open(digest) as stream:
            rows.update(blake2b(line, digest_size=12).digest() for line in stream)
    return rows


def datasets_visible(user: accounts.RequestUser) -> QuerySet[Dataset]:
    return Dataset.objects.filter(
        team__in=accounts.teams_visible(user), deleted_at=None
    ).select_related("team")


def dataset_versions_visible(user: accounts.RequestUser) -> QuerySet[DatasetVersion]:
    return DatasetVersion.objects.filter(
        dataset__team__in=accounts.teams_visible(user), dataset__deleted_at=None
    ).select_related("dataset__team", "artifact", "created_by")


def dataset_versions_usable(user: accounts.RequestUser) -> QuerySet[DatasetVersion]:
    """Versions whose rows are in the artifact store."""
    return dataset_versions_visible(user).filter(
        artifact__deleted_at=None, artifact__removed_at=None
    )


def datasets_with_versions(user: accounts.RequestUser) -> QuerySet[Dataset]:
    """Datasets, newest first, with prefetched ``versions`` without statistics and preview."""
    light = DatasetVersion.objects.defer("statistics", "preview").order_by("-number")
    return datasets_visible(user).prefetch_related(Prefetch("versions", queryset=light))


def datasets_with_newest_version(user: accounts.RequestUser) -> QuerySet[Dataset]:
    """Datasets annotated with ``newest_uid``, ``newest_number``, ``newest_at``, ``rows`` and ``size`` (bytes) of
    their newest version.
    """
    newest = DatasetVersion.objects.filter(dataset=OuterRef("pk")).order_by("-number")
    return datasets_visible(user).annotate(
        newest_uid=Subquery(newest.values("uid")[:1]),
        newest_number=Subquery(newest.values("number")[:1]),
        newest_at=Subquery(newest.values("created_at")[:1]),
        rows=Subquery(newest.values("row_count")[:1]),
        size=Subquery(newest.values("artifact__size")[:1]),
    )


#: Rows per page, and the most bytes of a file that one request searches.
ROWS_PER_PAGE = 20


MAX_BYTES_SEARCHED = 32 << 20


#: Characters of a message that a page shows.
MAX_MESSAGE_LENGTH = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow:
    #: Within its split, from 1.
    number: int
    messages: tuple[Mapping[str, str], ...]
    #: The rejected answer of a preference row; else empty.
    rejected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRowsPage:
    rows: tuple[DatasetRow, ...]
    #: Start of the next page as (byte offset, row number); None at the end.
    next_at: tuple[int, int] | None
    #: The search stopped at ``MAX_BYTES_SEARCHED``; later rows were not searched.
    cut: bool


def dataset_rows(
    version: DatasetVersion, *, split: str, text: str = "", offset: int = 0, number: int = 1
) -> DatasetRowsPage:
    """Rows of a split that contain the text, starting at byte ``offset`` with row ``number``.

    :raises ArtifactFileMissing: if the split has no rows, or its bytes have been removed.
    :raises BlobMissing: if the store has lost them.
    """
    stream, size = artifact_file(version.artifact, f"{split}.jsonl")
    found: list[DatasetRow] = []
    at, row = offset, number
    pattern = text.casefold()
    with stream:
        if not 0 <= offset <= size:
            raise ArtifactFileMissing(
                "dataset.offset.out_of_range",
                "offset {offset} is out of range; the split has {size} bytes",
                size=size,
                offset=offset,
            )
        stream.seek(offset)
        for line in stream:
            if len(found) == ROWS_PER_PAGE or at - offset > MAX_BYTES_SEARCHED:
                return DatasetRowsPage(
                    rows=tuple(found), next_at=(at, row), cut=len(found) < ROWS_PER_PAGE
                )
            shown = _row_if_matching(line, row, pattern)
            if shown is not None:
                found.append(shown)
            at, row = at + len(line), row + 1
    return DatasetRowsPage(rows=tuple(found), next_at=None, cut=False)


def _row_if_matching(line: bytes, number: int, pattern: str) -> DatasetRow | None:
    """The row if it contains the pattern, else None."""
    content = parse_json_or_none(line.decode(errors="replace"))
    row = content if isinstance(content, dict) else {}
    messages, rejected = row.get("messages", []), str(row.get("rejected", ""))
    texts = [str(one.get("content", "")) for one in messages] + [rejected]
    if pattern and not any(pattern in text.casefold() for text in texts):
        return None
    return DatasetRow(
        number=number,
        messages=tuple(
            {
                "role": str(one.get("role", "")),
                "content": _truncate_row(str(one.get("content", ""))),
            }
            for one in messages
        ),
        rejected=_truncate_row(rejected),
    )


def _truncate_row(content: str) -> str:
    return content if len(content) <= MAX_MESSAGE_LENGTH else content[:MAX_MESSAGE_LENGTH] + "…"
