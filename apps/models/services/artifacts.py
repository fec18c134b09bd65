"""Artifacts: immutable trees in the artifact store, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, BinaryIO

from apps.accounts.models import Team
from apps.models import selectors
from apps.models.models import Artifact, files_json

File = tuple[str, str, int]
"""Path, digest, size in bytes."""

_CHUNK = 1 << 20


class RegistrationRefused(Exception):
    """What was made or sent cannot be registered; the message says why."""


def artifact_create(
    *, team: Team | None, kind: Artifact.Kind, files: Sequence[File], made_by: str | None = None
) -> Artifact:
    """A new row for blobs that are in the store. ``made_by`` is unique: one artifact for each maker."""
    return Artifact.objects.create(
        team=team,
        kind=kind,
        files=files_json(list(files)),
        size=sum(size for _, _, size in files),
        made_by=made_by,
    )


def code_upload(*, team: Team, stream: BinaryIO, filename: str) -> Artifact:
    """The archive of a script job, kept as it came.

    :raises RegistrationRefused: if it is no archive that the runtime unpacks.
    """
    name = code_archive_name(filename)
    blob = selectors.artifact_store().put(chunks(stream))
    return artifact_create(
        team=team, kind=Artifact.Kind.CODE, files=[(name, blob.digest, blob.size)]
    )


def code_archive_name(filename: str) -> str:
    """The name under which the runtime finds an archive.

    :raises RegistrationRefused: if the runtime would not unpack it.
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


def chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in pieces of a mebibyte."""
    while chunk := stream.read(_CHUNK):
        yield chunk
