"""Model versions: validation of their files, import from folders, and gate overrides."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.models import selectors
from apps.models.models import (
    ArtifactKind,
    HubImport,
    ModelLine,
    ModelVersion,
    ModelVersionTransition,
)
from apps.models.services.artifact_storage import (
    File,
    artifact_create,
    precheck_storage_quota,
    read_chunks,
)
from apps.models.services.catalog import folder_names, version_columns_from_config
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.registry.versions import (
    CONFIG_FILE,
    MODEL,
    UNSAFE_SUFFIXES,
    GateDecision,
    ModelConfig,
    ModelEvent,
    ModelRefused,
    ModelState,
    check_files,
    check_tokenizer,
    config_path,
    count_safetensors_parameters,
    parse_model_config,
    strip_remote_code,
    weight_paths,
)
from controlplane.outbox.messages import publish_message
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.models import new_uid
from controlplane.persistence.state_transitions import apply_transition

#: Bytes. A larger header is not a valid safetensors header.
_MAX_HEADER_SIZE = 100 * 1024 * 1024
_TOKENIZER = "tokenizer_config.json"
_MAX_CONFIG_SIZE = 16 * 1024 * 1024


def reserve_model_version_number(*, team: Team | None, name: str) -> tuple[ModelLine, int]:
    """The model with that name, created if absent, and a version number reserved until the commit."""
    while True:
        line, _ = ModelLine.objects.get_or_create(team=team, name=name, deleted_at=None)
        lock_in_transaction(AdvisoryLock.NUMBER_VERSION, line.pk)
        # It may have been deleted, renamed or moved before the lock was acquired.
        if ModelLine.objects.filter(pk=line.pk, team=team, name=name, deleted_at=None).exists():
            break
    last = line.versions.aggregate(last=Max("number"))["last"] or 0
    return line, last + 1


def read_model_files(files: Sequence[File]) -> tuple[ModelConfig, int]:
    """Validate the stored files; return their configuration and parameter count.

    :raises ModelRefused: if the files are not a model.
    """
    store = selectors.artifact_store()
    digests = {path: digest for path, digest, _ in files}
    check_files(digests)
    described = config_path(digests)
    with store.open(digests[described]) as stream:
        config = parse_model_config(_read_json(stream, described), path=described)
    if _TOKENIZER in digests:
        with store.open(digests[_TOKENIZER]) as stream:
            check_tokenizer(_read_json(stream, _TOKENIZER))
    parameters = 0
    for path in weight_paths(digests):
        with store.open(digests[path]) as stream:
            parameters += _count_parameters(stream, path)
    return config, parameters


def _read_json(stream: IO[bytes], path: str) -> Any:
    content = stream.read(_MAX_CONFIG_SIZE + 1)
    if len(content) > _MAX_CONFIG_SIZE:
        raise ModelRefused(
            "model_version.file.too_large",
            "{path} is larger than {limit}",
            path=path,
            limit=format_bytes(_MAX_CONFIG_SIZE),
        )
    return _parse_json(content, path)


def _strip_remote_code(files: Sequence[File]) -> list[File]:
    """The files with a ``config.json`` without remote code; the architecture is known without it."""
    digest = next((digest for path, digest, _ in files if path == CONFIG_FILE), None)
    if digest is None:
        return list(files)
    store = selectors.artifact_store()
    with store.open(digest) as stream:
        config = _read_json(stream, CONFIG_FILE)
    if not config.get("auto_map"):
        return list(files)
    blob = store.put([json.dumps(strip_remote_code(config), indent=2).encode()])
    stripped = (CONFIG_FILE, blob.digest, blob.size)
    return [stripped if file[0] == CONFIG_FILE else file for file in files]


def _parse_json(content: bytes, path: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise ModelRefused(
            "model_version.file.invalid_json",
            "{path} is not valid JSON: {error}",
            path=path,
            error=str(error),
        ) from None
    except RecursionError:
        raise ModelRefused(
            "model_version.file.nested_too_deeply", "{path} is nested too deeply", path=path
        ) from None


def _count_parameters(stream: IO[bytes], path: str) -> int:
    """Parameters that the header of a safetensors file names.

    :raises ModelRefused: if the file has no such header.
    """
    start = stream.read(8)
    size = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 0 < size <= _MAX_HEADER_SIZE:
        raise ModelRefused(
            "model_version.file.not_safetensors", "{path} is not a safetensors file", path=path
        )
    try:
        return count_safetensors_parameters(_parse_json(stream.read(size), path))
    except (KeyError, TypeError, AttributeError):
        raise ModelRefused(
            "model_version.file.shapes_missing",
            "the header of {path} has no tensor shapes",
            path=path,
        ) from None


def model_folder_check(path: str) -> tuple[Path, ModelConfig]:
    """The folder and its configuration, if it lies under a model root and holds a model.

    :raises ModelRefused: otherwise, with the reason.
    """
    if "\0" in path:
        raise ModelRefused(
            "model_version.folder.nul_character",
            "{path} is not a path: it contains a NUL character",
            path=repr(path),
        )
    roots = [Path(root).resolve() for root in settings.NINEFOLD_MODEL_ROOTS]
    if not roots:
        raise ModelRefused(
            "model_version.folder.roots_not_configured",
            "no folder can be registered until NINEFOLD_MODEL_ROOTS lists the "
            "folders of the models",
        )
    folder = Path(path).resolve()
    if not any(folder.is_relative_to(root) for root in roots):
        raise ModelRefused(
            "model_version.folder.outside_roots",
            "{path} is outside the model roots: {roots}",
            path=path,
            roots=", ".join(str(root) for root in roots),
        )
    if not folder.is_dir():
        raise ModelRefused("model_version.folder.not_a_folder", "{path} is not a folder", path=path)
    names = [file.relative_to(folder).as_posix() for file in _files_below(folder)]
    check_files(names)
    described = config_path(names)
    with (folder / described).open("rb") as stream:
        config = parse_model_config(_read_json(stream, described), path=described)
    if (folder / _TOKENIZER).is_file():
        with (folder / _TOKENIZER).open("rb") as stream:
            check_tokenizer(_read_json(stream, _TOKENIZER))
    for weights in weight_paths(names):
        with (folder / weights).open("rb") as stream:
            _count_parameters(stream, weights)
    return folder, config


def _files_below(folder: Path) -> list[Path]:
    """Every file of a model's folder, in path order.

    :raises ModelRefused: if one of them is not a regular file inside the folder.
    """
    files: list[Path] = []
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            if not file.resolve().is_relative_to(folder):
                raise ModelRefused(
                    "model_version.file.link_outside_folder",
                    "{path} is a link to a target outside the folder",
                    path=str(file.relative_to(folder)),
                )
            if not file.is_file():
                raise ModelRefused(
                    "model_version.file.not_a_regular_file",
                    "{path} is not a regular file",
                    path=str(file.relative_to(folder)),
                )
            files.append(file)
    return sorted(files)


@transaction.atomic
def model_version_import(*, actor: User, team: Team, name: str, path: str) -> ModelVersion:
    """Create a version that the controller copies from ``path``.

    :raises ModelRefused: if the folder is not a model, or is outside the model roots.
    :raises StorageQuotaExceeded: if it exceeds the team's quota.
    """
    folder, config = model_folder_check(path)
    precheck_storage_quota(
        team=team, size=sum(file.stat().st_size for file in _importable_files(folder))
    )
    line, number = reserve_model_version_number(team=team, name=name)
    version = ModelVersion.objects.create(
        line=line,
        number=number,
        # As given, not where links lead: a client compares it with its own path.
        source_path=str(Path(path).absolute()),
        architecture=config.architecture,
        context_length=config.context_length,
        created_by=actor,
    )
    record_audit_entry(version, actor=actor, action="model.import", team=team)
    return version


def _importable_files(folder: Path) -> list[Path]:
    """The files that an import copies: formats that can execute code are skipped."""
    return [file for file in _files_below(folder) if file.suffix not in UNSAFE_SUFFIXES]


def model_folder_store(
    path: str, *, team: Team | None, on_progress: Callable[[], None]
) -> list[File]:
    """Copy a model's files into the artifact store for that team.

    ``on_progress`` is called after each MiB; an exception that it raises ends the copy.

    :raises ModelRefused: if the folder is no longer a model.
    :raises StorageQuotaExceeded: if it exceeds the team's quota.
    :raises StorageFull: if the store has no space.
    """
    folder, _ = model_folder_check(path)
    sources = _importable_files(folder)
    precheck_storage_quota(team=team, size=sum(file.stat().st_size for file in sources))
    store = selectors.artifact_store()
    files: list[File] = []
    for source in sources:
        with source.open("rb") as stream:
            blob = store.put(iterate_with_progress(read_chunks(stream), on_progress))
        files.append((str(source.relative_to(folder)), blob.digest, blob.size))
    return files


def iterate_with_progress(
    chunks: Iterable[bytes], on_progress: Callable[[], None]
) -> Iterator[bytes]:
    """The chunks, with a call of ``on_progress`` after each."""
    for chunk in chunks:
        yield chunk
        on_progress()


@transaction.atomic
def model_version_complete_import(
    *, version: ModelVersion, files: Sequence[File], at: datetime
) -> None:
    """:raises IllegalTransition: if it was imported or cancelled concurrently."""
    config, parameters = read_model_files(files)
    files = _strip_remote_code(files)
    artifact = artifact_create(team=version.line.team, kind=ArtifactKind.MODEL, files=files)
    reason = Reason("model_version.import.files_copied", "files copied: {count}", count=len(files))
    apply_transition(
        version,
        MODEL,
        ModelEvent.IMPORT,
        into=ModelVersionTransition,
        at=at,
        reason=reason,
        artifact=artifact,
        **version_columns_from_config(
            config=config, parameters=parameters, names=_origin_names(version)
        ),
    )
    publish_message(
        "model.imported",
        event_uid=new_uid(),
        version_uid=version.uid,
        reason=reason,
        at=at.isoformat(),
    )


def _origin_names(version: ModelVersion) -> list[str]:
    """Names of its origin: a hub repository, or a folder."""
    fetched = HubImport.objects.filter(version=version).values_list("repository", flat=True)
    return [*fetched, *folder_names(version.source_path)]


@transaction.atomic
def model_version_fail_import(*, version: ModelVersion, reason: str, at: datetime) -> None:
    apply_transition(
        version, MODEL, ModelEvent.FAIL, into=ModelVersionTransition, at=at, reason=reason
    )
    publish_message(
        "model.refused",
        event_uid=new_uid(),
        version_uid=version.uid,
        reason=reason,
        at=at.isoformat(),
    )


@transaction.atomic
def model_version_retry(*, version: ModelVersion, actor: User, at: datetime) -> None:
    """:raises IllegalTransition: if its import has not failed."""
    record_audit_entry(version, actor=actor, action="model.retry", team=version.line.team)
    apply_transition(
        version,
        MODEL,
        ModelEvent.RETRY,
        into=ModelVersionTransition,
        at=at,
        reason=Reason("model_version.import.retry_requested", "retry requested"),
        actor=actor.username,
    )


class GateOverrideRefused(ReasonedError):
    """The gate cannot be overridden; the message says why."""


@transaction.atomic
def model_version_accept(*, version: ModelVersion, actor: User, reason: str) -> ModelVersion:
    """Allow deployment of a rejected version.

    :raises GateOverrideRefused: without a reason, or if the version is not rejected.
    """
    return _override_gate(
        version,
        actor=actor,
        reason=reason,
        from_=(GateDecision.REJECTED,),
        to=GateDecision.OVERRIDDEN,
    )


@transaction.atomic
def model_version_reject(*, version: ModelVersion, actor: User, reason: str) -> ModelVersion:
    """Forbid new deployments of a version; running revisions are not changed.

    :raises GateOverrideRefused: without a reason, or if the version is not an accepted, quantized one.
    """
    return _override_gate(
        version,
        actor=actor,
        reason=reason,
        from_=(GateDecision.ACCEPTED, GateDecision.OVERRIDDEN),
        to=GateDecision.REJECTED,
    )


def _override_gate(
    version: ModelVersion,
    *,
    actor: User,
    reason: str,
    from_: tuple[GateDecision, ...],
    to: GateDecision,
) -> ModelVersion:
    justification = " ".join(reason.split())
    if not justification:
        raise GateOverrideRefused(
            "model_version.gate_override.reason_missing",
            "enter a reason; it is stored in the history",
        )
    row = ModelVersion.objects.select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    if not row.scheme and not row.format:
        raise GateOverrideRefused(
            "model_version.gate_override.not_quantized",
            "{version} is not quantized; only quantized versions have an acceptance decision",
            version=str(row),
        )
    if row.state != ModelState.READY:
        raise GateOverrideRefused(
            "model_version.state.not_ready",
            "{version} is {state}, not ready",
            version=str(row),
            state=row.state,
        )
    if row.acceptance not in from_:
        raise GateOverrideRefused(
            "model_version.gate_override.unchanged",
            "{version} is already {state}",
            version=str(row),
            state=row.acceptance,
        )
    before, row.acceptance = row.acceptance, to
    row.acceptance_reason = f"{actor.username}: {justification}"
    row.save(update_fields=["acceptance", "acceptance_reason"])
    record_audit_entry(
        row,
        actor=actor,
        action="model.accept" if to is GateDecision.OVERRIDDEN else "model.reject",
        team=row.line.team,
        reason=justification,
        before=before,
    )
    return row
