"""Imports from model hubs: lookup, request, and download in resumable time slices.

Each slice downloads ranges of the current file and appends them to a partial file on disk; a complete file is
compared with the hub's digest and moved to the artifact store. The next slice resumes at the end of the partial
file, so a killed worker or a broken connection costs one range. Files that are already in the store are not
downloaded.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urljoin

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.models import selectors as registry
from apps.models.models import HubImport, ModelVersion, ModelVersionTransition
from apps.models.selectors import model_versions as selectors
from apps.models.services.artifact_storage import precheck_storage_quota, read_chunks
from apps.models.services.model_versions import (
    iterate_with_progress,
    model_version_complete_import,
    model_version_fail_import,
    reserve_model_version_number,
)
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import MIB
from controlplane.domain.outbound.egress import EgressRefused, is_same_origin
from controlplane.domain.registry.model_hubs import (
    DigestVerifier,
    HubFile,
    HubImportRefused,
    RepositoryListing,
    check_repository,
    importable_files,
    next_range_size,
)
from controlplane.domain.registry.versions import MODEL, ModelEvent, ModelRefused, ModelState
from controlplane.domain.storage.team_storage import StorageQuotaExceeded
from controlplane.persistence.state_transitions import apply_transition
from controlplane.ports.artifacts import ArtifactError, BlobMissing, StorageUnavailable
from controlplane.ports.model_hubs import HubUnreachable
from controlplane.ports.outbound_http import OutboundFailed, OutboundHttpClient, OutboundResponse
from controlplane.web.outbound_http import configured_outbound

#: Duration of one time slice, so that imports alternate.
FETCH_SLICE = timedelta(seconds=15)
#: Delays between failed attempts; after the last one the import fails.
RETRY_DELAYS = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900, 3600))

#: How long partial downloads of a failed import are kept for a retry.
PARTIAL_DOWNLOAD_RETENTION = timedelta(days=7)


class ImportCancelled(Exception):
    """The import was cancelled during the download."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubLookup:
    """A repository and the files that its import would download."""

    hub: str
    address: str
    repository: str
    revision: str
    listing: RepositoryListing
    #: Bytes that are already in the artifact store.
    stored_bytes: int


def hub_lookup(*, hub: str, repository: str, revision: str = "") -> HubLookup:
    """Query the hub for the files that an import would download.

    :param revision: branch, tag or commit; empty: the default branch of the hub.
    :raises HubImportRefused: if the repository cannot be imported.
    :raises HubUnreachable: if the hub does not answer.
    :raises EgressRefused: if the policy forbids its address.
    """
    endpoint = selectors.hub_endpoint(hub)
    revision = revision or endpoint.hub.default_revision
    check_repository(repository, revision=revision)
    listing = importable_files(
        endpoint.hub.listing(
            configured_outbound(),
            address=endpoint.address,
            repository=repository,
            revision=revision,
            token=endpoint.token,
        )
    )
    return HubLookup(
        hub=hub,
        address=endpoint.address,
        repository=repository,
        revision=revision,
        listing=listing,
        stored_bytes=sum(file.size for file in listing.files if _is_hub_file_stored(file)),
    )


def _is_hub_file_stored(file: HubFile) -> bool:
    if not file.sha256:
        return False
    try:
        return registry.artifact_store().size(f"sha256:{file.sha256}") == file.size
    except BlobMissing:
        return False


@transaction.atomic
def hub_import_request(*, actor: User, team: Team, name: str, lookup: HubLookup) -> ModelVersion:
    """Create a version that the controller downloads.

    :raises StorageQuotaExceeded: if it exceeds the team's quota together with the running imports.
    """
    hub_import = selectors.importing_bytes(team)
    precheck_storage_quota(team=team, size=lookup.listing.size + hub_import)
    line, number = reserve_model_version_number(team=team, name=name)
    version = ModelVersion.objects.create(line=line, number=number, created_by=actor)
    HubImport.objects.create(
        version=version,
        hub=lookup.hub,
        address=lookup.address,
        repository=lookup.repository,
        revision=lookup.revision,
        commit=lookup.listing.commit,
        files=[file.as_json() for file in lookup.listing.files],
        size=lookup.listing.size,
    )
    record_audit_entry(
        version,
        actor=actor,
        action="model.fetch",
        team=team,
        repository=f"{lookup.hub}: {lookup.repository} at {lookup.revision}",
    )
    return version


@transaction.atomic
def hub_import_cancel(*, version: ModelVersion, actor: User, at: datetime) -> None:
    """Cancel the import; partial downloads stay until it is retried or the version is deleted.

    :raises IllegalTransition: if it is no longer being imported.
    """
    record_audit_entry(version, actor=actor, action="model.cancel", team=version.line.team)
    reason = Reason("transition.by_user.cancelled", "cancelled by {user}", user=actor.username)
    apply_transition(
        version,
        MODEL,
        ModelEvent.FAIL,
        into=ModelVersionTransition,
        at=at,
        reason=reason,
        actor=actor.username,
    )


def hub_import_fetch(row: HubImport, *, at: datetime, on_progress: Callable[[], None]) -> bool:
    """Download for one time slice; return whether the version became ready. Errors are recorded and retried.

    ``on_progress`` is called after each range; an exception that it raises ends the slice.
    """
    HubImport.objects.filter(pk=row.pk).update(served_at=at, retry_at=None)
    try:
        if not _fetch_files(row, on_progress=on_progress):
            return False
        stored = [(path, digest, size) for path, digest, size in row.stored]
        model_version_complete_import(version=row.version, files=stored, at=at)
    except ImportCancelled:
        return False
    except (HubUnreachable, StorageUnavailable) as trouble:
        _schedule_retry(row, error=str(trouble), at=at)
        return False
    except (
        HubImportRefused,
        EgressRefused,
        ModelRefused,
        StorageQuotaExceeded,
        ArtifactError,
        OSError,
    ) as error:
        model_version_fail_import(version=row.version, reason=str(error), at=at)
        return False
    shutil.rmtree(_partial_downloads_folder_of_import(row), ignore_errors=True)
    return True


def _schedule_retry(row: HubImport, *, error: str, at: datetime) -> None:
    failures = row.failures + 1
    if failures > len(RETRY_DELAYS):
        reason = Reason(
            "model_import.retries.exhausted",
            "{reason} (attempts: {attempts}; the downloaded files are kept for the next attempt)",
            reason=error,
            attempts=failures,
        )
        HubImport.objects.filter(pk=row.pk).update(failures=0, error="", retry_at=None)
        model_version_fail_import(version=row.version, reason=reason, at=at)
        return
    HubImport.objects.filter(pk=row.pk).update(
        failures=failures, error=error, retry_at=at + RETRY_DELAYS[failures - 1]
    )


def _partial_downloads_folder_of_import(row: HubImport) -> Path:
    return selectors.partial_downloads_folder() / row.version.uid


def _fetch_files(row: HubImport, *, on_progress: Callable[[], None]) -> bool:
    """Whether every file is in the store; False if the time slice ends before.

    :raises HubUnreachable: if a range cannot be downloaded.
    :raises HubImportRefused: if a file is damaged.
    """
    until = time.monotonic() + FETCH_SLICE.total_seconds()
    done = {path for path, _, _ in row.stored}
    for number, value in enumerate(row.files):
        file = HubFile.from_json(value)
        if file.path in done:
            continue
        if _is_hub_file_stored(file):
            _record_stored(row, file, digest=f"sha256:{file.sha256}", spared=file.size)
            continue
        part = _partial_downloads_folder_of_import(row) / f"{number}.part"
        if not _fetch_file(row, file, part, until=until, on_progress=on_progress):
            return False
        _record_stored(row, file, digest=_store_file(file, part, on_progress=on_progress))
        part.unlink(missing_ok=True)
    return True


def _fetch_file(
    row: HubImport, file: HubFile, part: Path, *, until: float, on_progress: Callable[[], None]
) -> bool:
    """Whether the partial file is complete; False if the time slice ends before."""
    part.parent.mkdir(parents=True, exist_ok=True)
    endpoint = selectors.hub_endpoint(row.hub)
    source = RangeDownloader(
        outbound=configured_outbound(),
        url=endpoint.hub.file_url(
            address=row.address, repository=row.repository, commit=row.commit, path=file.path
        ),
        # A token is sent only to the URL that it was configured for.
        headers=endpoint.hub.headers(
            token=endpoint.token if endpoint.address == row.address else ""
        ),
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
            next_chunk = source.next_chunk(arrived)
            stream.write(next_chunk)
            stream.flush()
            arrived += len(next_chunk)
            _record_progress(row, received=before + arrived, speed=source.speed)
            on_progress()
    return True


def _record_progress(row: HubImport, *, received: int, speed: float) -> None:
    """:raises ImportCancelled: if the version is no longer being imported."""
    changed = HubImport.objects.filter(pk=row.pk, version__state=ModelState.IMPORTING).update(
        received=received, speed=speed, failures=0, error=""
    )
    if not changed:
        raise ImportCancelled(row.version.uid)
    row.failures = 0


def _store_file(file: HubFile, part: Path, *, on_progress: Callable[[], None]) -> str:
    """:raises HubImportRefused: if the digest differs from the hub's; the partial file is removed."""
    verifier = DigestVerifier(file)
    with part.open("rb") as stream:
        blob = registry.artifact_store().put(
            iterate_with_progress(verifier.observed(read_chunks(stream)), on_progress)
        )
    try:
        verifier.verify()
    except HubImportRefused:
        part.unlink(missing_ok=True)
        raise
    return blob.digest


def _record_stored(row: HubImport, file: HubFile, *, digest: str, spared: int = 0) -> None:
    row.stored = [*row.stored, [file.path, digest, file.size]]
    row.spared += spared
    row.received = sum(size for _, _, size in row.stored)
    row.save(update_fields=["stored", "spared", "received"])


def partial_downloads_cleanup(*, at: datetime) -> None:
    """Remove partial downloads of versions that are no longer imported, and of those that failed long ago."""
    folder = selectors.partial_downloads_folder()
    if not folder.is_dir():
        return
    in_use = selectors.versions_with_partial_downloads(failed_since=at - PARTIAL_DOWNLOAD_RETENTION)
    for child in folder.iterdir():
        if child.name not in in_use:
            shutil.rmtree(child, ignore_errors=True)


_MIN_RANGE, _MAX_RANGE = MIB // 4, 64 * MIB
_FIRST_RANGE = MIB
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5
#: Status codes of a redirect target whose signature has expired.
_SIGNATURE_EXPIRED = frozenset({401, 403, 410})


class RangeDownloader:
    """Downloads one file with ``Range`` requests whose size adapts to the connection, through the egress policy.

    A redirect target is reused until it expires; ``headers`` are sent to the hub only.
    """

    def __init__(
        self, *, outbound: OutboundHttpClient, url: str, headers: Mapping[str, str], size: int
    ) -> None:
        self._outbound = outbound
        self._url = url
        self._headers = headers
        self._size = size
        self._redirect_target = ""
        self._length = _FIRST_RANGE
        #: Bytes per second of the last range.
        self.speed = 0.0

    def next_chunk(self, offset: int) -> bytes:
        """Bytes of the file from ``offset``; at least one.

        :raises HubUnreachable: if the request fails.
        :raises HubImportRefused: if the hub denies access to the file.
        :raises EgressRefused: if a redirect leads to a forbidden address.
        """
        last = min(offset + self._length, self._size) - 1
        try:
            answer = self._get_range(offset, last)
        except OutboundFailed as failure:
            # A slow connection may manage a smaller range.
            self._length = max(_MIN_RANGE, self._length // 2)
            self._redirect_target = ""
            raise HubUnreachable(str(failure)) from failure
        content = self._range_body(answer, offset=offset, last=last)
        self.speed = len(content) / max(answer.seconds, 1e-3)
        self._length = next_range_size(
            last=self._length, seconds=answer.seconds, least=_MIN_RANGE, most=_MAX_RANGE
        )
        return content

    def _range_body(self, answer: OutboundResponse, *, offset: int, last: int) -> bytes:
        if answer.status in (401, 403, 404):
            raise HubImportRefused(
                "model_import.file.access_denied",
                "the hub refused {url} (status {status}); accept the terms of the "
                "repository on the hub, or check that the file still exists",
                url=self._url,
                status=answer.status,
            )
        whole = answer.status == 200 and offset == 0 and len(answer.body) == self._size
        if answer.status != 206 and not whole:
            raise HubUnreachable(
                "model_import.range.unexpected_status",
                "the hub returned status {status} for a range request of a file",
                status=answer.status,
            )
        if not whole and len(answer.body) != last - offset + 1:
            raise HubUnreachable(
                "model_import.range.size_mismatch",
                "the hub returned {received} bytes instead of the {requested} requested",
                received=len(answer.body),
                requested=last - offset + 1,
            )
        return answer.body

    def _get_range(self, offset: int, last: int) -> OutboundResponse:
        if self._redirect_target:
            answer = self._request_range(self._redirect_target, offset, last)
            if answer.status not in _SIGNATURE_EXPIRED:
                return answer
            self._redirect_target = ""
        url = self._url
        for _ in range(_MAX_REDIRECTS):
            answer = self._request_range(url, offset, last)
            if answer.status not in _REDIRECTS:
                self._redirect_target = url if url != self._url else ""
                return answer
            url = urljoin(url, answer.headers.get("location", ""))
        raise HubUnreachable(
            "model_import.redirects.too_many",
            "the hub redirected more than {limit} times",
            limit=_MAX_REDIRECTS,
        )

    def _request_range(self, url: str, offset: int, last: int) -> OutboundResponse:
        own = is_same_origin(before=self._url, after=url)
        headers = {"Range": f"bytes={offset}-{last}", **(self._headers if own else {})}
        # A server without range support answers with the whole file.
        return self._outbound.fetch(
            url, headers=headers, largest=max(_MAX_RANGE, last - offset + 1)
        )
