"""Artifacts: the artifact store, the artifacts that a user may see, and their files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db.models import Q, QuerySet

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.models import Artifact
from controlplane.ports import registry
from controlplane.ports.artifacts import ArtifactStore, BlobMissing
from controlplane.ports.launches import InputTree


@cache
def _store(kind: str, root: str) -> ArtifactStore:
    return registry.artifact_store(kind, {"root": root})


def artifact_store() -> ArtifactStore:
    return _store("filesystem", str(Path(settings.NINEFOLD_HOME, "artifacts")))


def shared_or_of(teams: QuerySet[Team], path: str) -> Q:
    return Q(**{f"{path}__in": teams}) | Q(**{f"{path}__isnull": True})


def input_tree(name: str, artifact: Artifact) -> InputTree:
    """The files of an artifact as the input of a launch.

    :raises BlobMissing: if its bytes have been removed.
    """
    if artifact.removed_at is not None:
        raise BlobMissing(
            f"the bytes of {name} are gone since {artifact.removed_at:%Y-%m-%d}: "
            f"{artifact.deletion_reason}"
        )
    return InputTree(name=name, files=artifact.tree)


def artifacts_visible(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """Artifacts of the user's teams and those shared with every team."""
    return Artifact.objects.filter(shared_or_of(accounts.teams_of(user), "team")).select_related(
        "team"
    )


def code_visible(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """Code archives that a script job may run."""
    return artifacts_visible(user).filter(
        kind=Artifact.Kind.CODE, team__isnull=False, deleted_at=None, removed_at=None
    )


class ArtifactFileMissing(LookupError):
    """The artifact has no file at that path."""


def artifact_file(artifact: Artifact, path: str) -> tuple[BinaryIO, int]:
    """The opened file and its size in bytes. The caller closes it.

    :raises ArtifactFileMissing: if there is no file at that path, or its bytes have been removed.
    :raises BlobMissing: if the store has lost it.
    """
    if artifact.removed_at is not None:
        raise ArtifactFileMissing(
            f"its bytes are gone since {artifact.removed_at:%Y-%m-%d}: {artifact.deletion_reason}"
        )
    digest = artifact.tree.get(path)
    if digest is None:
        raise ArtifactFileMissing(
            f"there is no file {path!r}; there are {', '.join(artifact.tree)}"
        )
    store = artifact_store()
    return store.open(digest), store.size(digest)


def parse_json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
