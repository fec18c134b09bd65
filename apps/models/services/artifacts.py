"""Artifacts: rows for immutable file trees in the artifact store."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import IO, BinaryIO

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import audit
from apps.models import selectors
from apps.models.models import Artifact, files_json
from apps.models.services.storage import storage_charge, storage_check_fits

File = tuple[str, str, int]
"""Path, digest, size in bytes."""

_CHUNK = 1 << 20


class RegistrationRefused(Exception):
    """The output or upload cannot be registered; the message says why."""


@transaction.atomic
def artifact_create(
    *, team: Team | None, kind: Artifact.Kind, files: Sequence[File], made_by: str | None = None
) -> Artifact:
    """Create a row for blobs that are in the store. ``made_by`` is unique: one artifact per creator.

    Outputs of jobs are stored even if they exceed the quota, so that finished work is not lost.

    :raises StorageQuotaExceeded: if an upload or import exceeds the team's quota.
    """
    size = sum(size for _, _, size in files)
    if made_by is None:
        storage_charge(team=team, size=size)
    return Artifact.objects.create(
        team=team,
        kind=kind,
        files=files_json(list(files)),
        size=size,
        made_by=made_by,
    )


def code_upload(*, actor: User, team: Team, stream: BinaryIO, filename: str) -> Artifact:
    """Store the archive of a script job unchanged.

    :raises RegistrationRefused: if the runtime cannot unpack the archive.
    :raises StorageQuotaExceeded: if it exceeds the team's quota.
    """
    name = code_archive_name(filename)
    storage_check_fits(team=team, size=_size_of(stream))
    blob = selectors.artifact_store().put(read_chunks(stream))
    with transaction.atomic():
        artifact = artifact_create(
            team=team, kind=Artifact.Kind.CODE, files=[(name, blob.digest, blob.size)]
        )
        audit(actor=actor, action="code.upload", team=team, uid=artifact.uid, name=name)
    return artifact


def _size_of(stream: BinaryIO) -> int:
    """Bytes from the current position to the end."""
    here = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(here)
    return end - here


def code_archive_name(filename: str) -> str:
    """The name under which the runtime expects an archive.

    :raises RegistrationRefused: if the runtime cannot unpack it.
    """
    lowered = filename.lower()
    for ending, name in (
        (".tar.gz", "code.tar.gz"),
        (".tgz", "code.tar.gz"),
        (".tar", "code.tar"),
        (".zip", "code.zip"),
    ):
        if lowered.endswith(ending):
            return name
    raise RegistrationRefused(
        f"{filename!r} is no archive that can be unpacked; send .tar.gz, .tar or .zip"
    )


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in chunks of one MiB."""
    while chunk := stream.read(_CHUNK):
        yield chunk
