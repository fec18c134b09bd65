"""What fills the storage, one thing at a time: artifacts, and what other apps keep beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.accounts import selectors as accounts
from apps.models.models import Artifact
from apps.models.selectors.sources import sources
from apps.models.selectors.storage import (
    BIGGEST,
    KIND_OF,
    UNDO_WITHIN,
    artifacts_deleted,
    artifacts_with_bytes,
    title_of,
)
from controlplane.domain.storage.retention import RetentionItem, RetentionItemKind
from controlplane.domain.storage.usage import StorageKind

_KINDS = {
    RetentionItemKind.CHECKPOINTS: StorageKind.CHECKPOINTS,
    RetentionItemKind.UPLOADS: StorageKind.JOB_FILES,
    RetentionItemKind.LOG: StorageKind.LOGS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """One thing with bytes of its own, as a list shows it."""

    kind: StorageKind
    name: str
    #: None where it belongs to every team.
    team: str | None
    size: int
    at: datetime | None
    #: Of the artifact, or of the attempt.
    uid: str
    #: What an attempt left; None for an artifact.
    item: RetentionItem | None = None
    pinned: bool = False
    #: The page that shows it, by the name of its address, and the uid there; empty where there is none.
    page: str = ""
    page_uid: str = ""
    #: Of a deleted one: until when it can be had back, and who deleted it.
    undo_until: datetime | None = None
    deleted_by: str = ""


def things_biggest(user: accounts.RequestUser, *, count: int = BIGGEST) -> list[Thing]:
    """The largest of what their teams store, the largest first."""
    artifacts = _of_artifacts(list(artifacts_with_bytes(user)[:count]))
    teams = list(accounts.teams_of(user))
    names = {team.uid: team.name for team in teams}
    left = [
        _of_item(item, team=names[item.team])
        for source in sources()
        for item in source.items_largest(teams=[team.pk for team in teams], count=count)
        if item.size
    ]
    return sorted([*artifacts, *left], key=lambda thing: -thing.size)[:count]


def things_deleted(user: accounts.RequestUser) -> list[Thing]:
    """What can still be had back; what goes first comes first."""
    return _of_artifacts(list(artifacts_deleted(user)))


def item_of(
    kind: RetentionItemKind, uid: str, *, user: accounts.RequestUser
) -> RetentionItem | None:
    """What an attempt of one of their teams left, if it is there."""
    teams = frozenset(accounts.teams_of(user).values_list("uid", flat=True))
    found = (
        item
        for source in sources()
        for item in source.items_of(uid)
        if item.kind is kind and item.team in teams
    )
    return next(found, None)


def _of_artifacts(artifacts: Sequence[Artifact]) -> list[Thing]:
    uids = [_attempt_of(artifact) for artifact in artifacts]
    makers = {uid: maker for source in sources() for uid, maker in source.makers(uids).items()}
    return [_of_artifact(artifact, makers) for artifact in artifacts]


def _attempt_of(artifact: Artifact) -> str:
    """Uid of the attempt that made it; empty if none did."""
    maker, _, uid = (artifact.made_by or "").partition(":")
    return uid if maker == "attempt" else ""


def _of_artifact(artifact: Artifact, makers: Mapping[str, tuple[str, str]]) -> Thing:
    name, page, page_uid = title_of(artifact), *_page_of(artifact)
    if not page and (maker := makers.get(_attempt_of(artifact))) is not None:
        name, page, page_uid = maker[0], "job", maker[1]
    deleted = artifact.deleted_at
    return Thing(
        kind=KIND_OF[artifact.kind],
        name=name,
        team=artifact.team.name if artifact.team else None,
        size=artifact.size,
        at=artifact.created_at,
        uid=artifact.uid,
        pinned=artifact.pinned_at is not None,
        page=page,
        page_uid=page_uid,
        undo_until=deleted + UNDO_WITHIN if deleted else None,
        deleted_by=artifact.deleted_by,
    )


def _page_of(artifact: Artifact) -> tuple[str, str]:
    for relation, page in (
        ("modelversion", "model-version"),
        ("datasetversion", "dataset-version"),
    ):
        version = getattr(artifact, relation, None)
        if version is not None:
            return page, version.uid
    return "", ""


def _of_item(item: RetentionItem, *, team: str) -> Thing:
    return Thing(
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
