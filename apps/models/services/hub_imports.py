"""Importing models from hubs: look up, ask for, and fetch in turns that may end at any moment.

A turn fetches pieces of the file that is on its way and appends them to a part on disk; a whole file is compared
with the hub's digest and goes to the artifact store. Whoever takes the next turn goes on at the part's end, so
a killed worker or a broken line costs one piece. Bytes that are in the store already are not fetched at all.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import audit
from apps.models import selectors as registry
from apps.models.models import HubImport, ModelVersion, ModelVersionTransition
from apps.models.selectors import hubs as selectors
from apps.models.services.artifacts import chunks
from apps.models.services.hub_pieces import PieceSource
from apps.models.services.storage_charges import storage_check_room
from apps.models.services.versions import (
    line_with_next_number,
    model_version_failed,
    model_version_imported,
    watched,
)
from controlplane.domain.hubs import Check, HubFile, HubRefused, Listing, check_repository, wanted
from controlplane.domain.models import MODEL, ModelEvent, ModelRefused, ModelState
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.domain.storage.usage import StorageQuotaExceeded
from controlplane.persistence.state_transitions import apply_transition
from controlplane.ports.artifacts import ArtifactError, BlobMissing
from controlplane.ports.hubs import HubUnreachable
from controlplane.web.outbound import outbound

#: How long one turn fetches, so that other imports get theirs.
TURN = timedelta(seconds=15)
#: Pauses between tries that bring nothing; after the last the import has failed.
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900, 3600))

#: How long what has arrived of a failed import waits for another try.
KEEP_PARTS = timedelta(days=7)


class ImportEnded(Exception):
    """Somebody ended the import while bytes were on their way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A repository, and what its import would take."""

    hub: str
    address: str
    repository: str
    revision: str
    listing: Listing
    #: Bytes of it that are in the artifact store already.
    here: int


def hub_look_up(*, hub: str, repository: str, revision: str) -> Found:
    """What would be fetched, asked of the hub now.

    :raises HubRefused: if there is nothing that can be imported.
    :raises HubUnreachable: if the hub does not answer.
    :raises EgressRefused: if the policy forbids its address.
    """
    check_repository(repository, revision=revision)
    place = selectors.hub_place(hub)
    listing = wanted(
        place.hub.listing(
            outbound(),
            address=place.address,
            repository=repository,
            revision=revision,
            token=place.token,
        )
    )
    return Found(
        hub=hub,
        address=place.address,
        repository=repository,
        revision=revision,
        listing=listing,
        here=sum(file.size for file in listing.files if _is_here(file)),
    )


def _is_here(file: HubFile) -> bool:
    if not file.sha256:
        return False
    try:
        return registry.artifact_store().size(f"sha256:{file.sha256}") == file.size
    except BlobMissing:
        return False


@transaction.atomic
def hub_import_request(*, actor: User, team: Team, name: str, found: Found) -> ModelVersion:
    """A version that the next turns fetch.

    :raises StorageQuotaExceeded: if it is more than the team may still store beside what it is fetching.
    """
    arriving = selectors.bytes_arriving(team)
    storage_check_room(team=team, size=found.listing.size + arriving)
    line, number = line_with_next_number(team=team, name=name)
    version = ModelVersion.objects.create(line=line, number=number, created_by=actor)
    HubImport.objects.create(
        version=version,
        hub=found.hub,
        address=found.address,
        repository=found.repository,
        revision=found.revision,
        commit=found.listing.commit,
        files=[file.as_json() for file in found.listing.files],
        size=found.listing.size,
    )
    audit(
        actor=actor,
        action="model.fetch",
        team=team,
        uid=version.uid,
        name=str(version),
        repository=f"{found.hub}: {found.repository} at {found.revision}",
    )
    return version


@transaction.atomic
def hub_import_cancel(*, version: ModelVersion, actor: User, at: datetime) -> None:
    """End it; what has arrived stays until it is tried again or the version is deleted.

    :raises IllegalTransition: if it does not wait for bytes any more.
    """
    audit(
        actor=actor,
        action="model.cancel",
        team=version.line.team,
        uid=version.uid,
        name=str(version),
    )
    reason = f"cancelled by {actor.username}"
    apply_transition(
        version,
        MODEL,
        ModelEvent.FAIL,
        into=ModelVersionTransition,
        at=at,
        reason=reason,
        actor=actor.username,
    )


def hub_import_turn(row: HubImport, *, at: datetime, progressed: Callable[[], None]) -> bool:
    """Fetch for a while; say whether the version became ready. What fails is noted, and tried again later.

    ``progressed`` is called after each piece; what it raises ends the turn.
    """
    HubImport.objects.filter(pk=row.pk).update(served_at=at, retry_at=None)
    try:
        if not _fetched(row, progressed=progressed):
            return False
        stored = [(path, digest, size) for path, digest, size in row.stored]
        model_version_imported(version=row.version, files=stored, at=at)
    except ImportEnded:
        return False
    except HubUnreachable as trouble:
        _try_later(row, trouble=str(trouble), at=at)
        return False
    except (
        HubRefused,
        EgressRefused,
        ModelRefused,
        StorageQuotaExceeded,
        ArtifactError,
        OSError,
    ) as error:
        model_version_failed(version=row.version, reason=str(error), at=at)
        return False
    shutil.rmtree(_folder(row), ignore_errors=True)
    return True


def _try_later(row: HubImport, *, trouble: str, at: datetime) -> None:
    failures = row.failures + 1
    if failures > len(PAUSES):
        reason = f"{trouble} (tried {failures} times; what has arrived is kept for another try)"
        HubImport.objects.filter(pk=row.pk).update(failures=0, trouble="", retry_at=None)
        model_version_failed(version=row.version, reason=reason, at=at)
        return
    HubImport.objects.filter(pk=row.pk).update(
        failures=failures, trouble=trouble, retry_at=at + PAUSES[failures - 1]
    )


def _folder(row: HubImport) -> Path:
    return selectors.parts_folder() / row.version.uid


def _fetched(row: HubImport, *, progressed: Callable[[], None]) -> bool:
    """Whether every file is in the store; False if the turn's time is up before.

    :raises HubUnreachable: if a piece does not come.
    :raises HubRefused: if a file arrived damaged.
    """
    until = time.monotonic() + TURN.total_seconds()
    done = {path for path, _, _ in row.stored}
    for number, value in enumerate(row.files):
        file = HubFile.from_json(value)
        if file.path in done:
            continue
        if _is_here(file):
            _keep(row, file, digest=f"sha256:{file.sha256}", spared=file.size)
            continue
        part = _folder(row) / f"{number}.part"
        if not _complete(row, file, part, until=until, progressed=progressed):
            return False
        _keep(row, file, digest=_store(file, part, progressed=progressed))
        part.unlink(missing_ok=True)
    return True


def _complete(
    row: HubImport, file: HubFile, part: Path, *, until: float, progressed: Callable[[], None]
) -> bool:
    """Whether the part holds the whole file; False if the turn's time is up before."""
    part.parent.mkdir(parents=True, exist_ok=True)
    place = selectors.hub_place(row.hub)
    source = PieceSource(
        outbound=outbound(),
        url=place.hub.file_url(
            address=row.address, repository=row.repository, commit=row.commit, path=file.path
        ),
        # A token is for the address that it was set for.
        headers=place.hub.headers(token=place.token if place.address == row.address else ""),
        size=file.size,
    )
    before = sum(size for _, _, size in row.stored)
    with part.open("ab") as stream:
        arrived = stream.seek(0, 2)
        if arrived > file.size:
            stream.truncate(0)
            arrived = 0
        while arrived < file.size:
            if time.monotonic() > until:
                return False
            piece = source.piece(arrived)
            stream.write(piece)
            stream.flush()
            arrived += len(piece)
            _note(row, received=before + arrived, speed=source.speed)
            progressed()
    return True


def _note(row: HubImport, *, received: int, speed: float) -> None:
    """:raises ImportEnded: if the version is no longer being imported."""
    changed = HubImport.objects.filter(pk=row.pk, version__state=ModelState.IMPORTING).update(
        received=received, speed=speed, failures=0, trouble=""
    )
    if not changed:
        raise ImportEnded(row.version.uid)
    row.failures = 0


def _store(file: HubFile, part: Path, *, progressed: Callable[[], None]) -> str:
    """:raises HubRefused: if the content is not what the hub said; the part is thrown away."""
    check = Check(file)
    with part.open("rb") as stream:
        blob = registry.artifact_store().put(watched(check.watched(chunks(stream)), progressed))
    try:
        check.finish()
    except HubRefused:
        part.unlink(missing_ok=True)
        raise
    return blob.digest


def _keep(row: HubImport, file: HubFile, *, digest: str, spared: int = 0) -> None:
    row.stored = [*row.stored, [file.path, digest, file.size]]
    row.spared += spared
    row.received = sum(size for _, _, size in row.stored)
    row.save(update_fields=["stored", "spared", "received"])


def parts_tidy(*, at: datetime) -> None:
    """Throw away parts of versions that will not be imported any more, and of those that failed long ago."""
    folder = selectors.parts_folder()
    if not folder.is_dir():
        return
    waiting = selectors.versions_with_parts(failed_since=at - KEEP_PARTS)
    for child in folder.iterdir():
        if child.name not in waiting:
            shutil.rmtree(child, ignore_errors=True)
