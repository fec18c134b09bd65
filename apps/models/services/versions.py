"""Model versions: what their files say, and how a folder becomes one."""

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
from apps.accounts.services import audit
from apps.models import selectors
from apps.models.models import Artifact, HubImport, ModelLine, ModelVersion, ModelVersionTransition
from apps.models.services.artifacts import File, artifact_create, chunks
from apps.models.services.catalog import version_facts
from apps.models.services.storage_charges import storage_check_room
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.models import (
    MODEL,
    UNSAFE_SUFFIXES,
    ModelConfig,
    ModelEvent,
    ModelRefused,
    check_files,
    check_tokenizer,
    count_parameters,
    read_config,
    without_code,
)
from controlplane.outbox.messages import publish
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.models import new_uid
from controlplane.persistence.state_transitions import apply_transition

#: A safetensors header is small; anything larger is not one.
_LARGEST_HEADER = 100 * 1024 * 1024
_TOKENIZER = "tokenizer_config.json"
_LARGEST_CONFIG = 16 * 1024 * 1024


def line_with_next_number(*, team: Team | None, name: str) -> tuple[ModelLine, int]:
    """The line of that name, created if absent, and a version number that is ours until the commit."""
    line, _ = ModelLine.objects.get_or_create(team=team, name=name)
    lock_in_transaction(AdvisoryLock.NUMBER_VERSION, line.pk)
    last = line.versions.aggregate(last=Max("number"))["last"] or 0
    return line, last + 1


def facts_of(files: Sequence[File]) -> tuple[ModelConfig, int]:
    """:raises ModelRefused: if the files are no model."""
    check_files(frozenset(path for path, _, _ in files))
    store = selectors.artifact_store()
    digests = {path: digest for path, digest, _ in files}
    with store.open(digests["config.json"]) as stream:
        config = _config(stream)
    if _TOKENIZER in digests:
        with store.open(digests[_TOKENIZER]) as stream:
            check_tokenizer(_small_json(stream, _TOKENIZER))
    parameters = 0
    for path, digest in digests.items():
        if path.endswith(".safetensors") and "/" not in path:
            with store.open(digest) as stream:
                parameters += _count(stream, path)
    return config, parameters


def _config(stream: IO[bytes]) -> ModelConfig:
    return read_config(_small_json(stream, "config.json"))


def _small_json(stream: IO[bytes], path: str) -> Any:
    content = stream.read(_LARGEST_CONFIG + 1)
    if len(content) > _LARGEST_CONFIG:
        raise ModelRefused(f"{path} has more than {format_bytes(_LARGEST_CONFIG)}")
    return _json(content, path)


def _without_code(files: Sequence[File]) -> list[File]:
    """The files with a ``config.json`` that names no code: the architecture is known without it."""
    digest = next(digest for path, digest, _ in files if path == "config.json")
    store = selectors.artifact_store()
    with store.open(digest) as stream:
        config = _small_json(stream, "config.json")
    if not config.get("auto_map"):
        return list(files)
    blob = store.put([json.dumps(without_code(config), indent=2).encode()])
    stripped = ("config.json", blob.digest, blob.size)
    return [stripped if file[0] == "config.json" else file for file in files]


def _json(content: bytes, path: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise ModelRefused(f"{path} is not valid JSON: {error}") from None
    except RecursionError:
        raise ModelRefused(f"{path} is nested too deeply") from None


def _count(stream: IO[bytes], path: str) -> int:
    """Parameters that the header of a safetensors file names.

    :raises ModelRefused: if the file has no such header.
    """
    start = stream.read(8)
    size = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 0 < size <= _LARGEST_HEADER:
        raise ModelRefused(f"{path} is not a safetensors file")
    try:
        return count_parameters(_json(stream.read(size), path))
    except (KeyError, TypeError, AttributeError):
        raise ModelRefused(f"{path} has a header that names no shapes") from None


def model_folder_check(path: str) -> tuple[Path, ModelConfig]:
    """The folder, if it lies under a model root and holds a model.

    :raises ModelRefused: otherwise, with the reason.
    """
    if "\0" in path:
        raise ModelRefused(f"{path!r} is not a path: it holds a NUL character")
    roots = [Path(root).resolve() for root in settings.NINEFOLD_MODEL_ROOTS]
    if not roots:
        raise ModelRefused(
            "no folder may be registered until NINEFOLD_MODEL_ROOTS names where models lie"
        )
    folder = Path(path).resolve()
    if not any(folder.is_relative_to(root) for root in roots):
        raise ModelRefused(
            f"{path} is outside of the model roots: {', '.join(str(root) for root in roots)}"
        )
    if not folder.is_dir():
        raise ModelRefused(f"{path} is not a folder")
    files = _files_below(folder)
    check_files(frozenset(file.name for file in files if file.parent == folder))
    with (folder / "config.json").open("rb") as stream:
        config = _config(stream)
    if (folder / _TOKENIZER).is_file():
        with (folder / _TOKENIZER).open("rb") as stream:
            check_tokenizer(_small_json(stream, _TOKENIZER))
    for weights in sorted(folder.glob("*.safetensors")):
        with weights.open("rb") as stream:
            _count(stream, weights.name)
    return folder, config


def _files_below(folder: Path) -> list[Path]:
    """Every file of a model's folder, in path order.

    :raises ModelRefused: if one of them is not a plain file inside the folder.
    """
    files: list[Path] = []
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            if not file.resolve().is_relative_to(folder):
                raise ModelRefused(f"{file.relative_to(folder)} is a link that leaves the folder")
            if not file.is_file():
                raise ModelRefused(f"{file.relative_to(folder)} is not a regular file")
            files.append(file)
    return sorted(files)


@transaction.atomic
def model_version_import(*, actor: User, team: Team, name: str, path: str) -> ModelVersion:
    """A version that the next turn of the import loop copies from ``path``.

    :raises ModelRefused: if the folder is no model, or lies where nothing may be taken from.
    :raises StorageQuotaExceeded: if it is more than the team may still store.
    """
    folder, config = model_folder_check(path)
    storage_check_room(team=team, size=sum(file.stat().st_size for file in _imported(folder)))
    line, number = line_with_next_number(team=team, name=name)
    version = ModelVersion.objects.create(
        line=line,
        number=number,
        source_path=str(folder),
        architecture=config.architecture,
        context_length=config.context_length,
        created_by=actor,
    )
    audit(actor=actor, action="model.import", team=team, uid=version.uid, name=str(version))
    return version


def _imported(folder: Path) -> list[Path]:
    """The files that an import takes: those that can run code stay behind."""
    return [file for file in _files_below(folder) if file.suffix not in UNSAFE_SUFFIXES]


def folder_store(path: str, *, team: Team | None, progressed: Callable[[], None]) -> list[File]:
    """Copy a model's files into the artifact store for that team.

    ``progressed`` is called after each mebibyte; what it raises ends the copy.

    :raises ModelRefused: if the folder is no longer a model.
    :raises StorageQuotaExceeded: if it is more than the team may still store.
    :raises StorageFull: if there is no room.
    """
    folder, _ = model_folder_check(path)
    sources = _imported(folder)
    storage_check_room(team=team, size=sum(file.stat().st_size for file in sources))
    store = selectors.artifact_store()
    files: list[File] = []
    for source in sources:
        with source.open("rb") as stream:
            blob = store.put(watched(chunks(stream), progressed))
        files.append((str(source.relative_to(folder)), blob.digest, blob.size))
    return files


def watched(pieces: Iterable[bytes], progressed: Callable[[], None]) -> Iterator[bytes]:
    """The pieces, with a call after each; what it raises ends the copy."""
    for piece in pieces:
        yield piece
        progressed()


@transaction.atomic
def model_version_imported(*, version: ModelVersion, files: Sequence[File], at: datetime) -> None:
    """:raises IllegalTransition: if it was imported meanwhile."""
    config, parameters = facts_of(files)
    files = _without_code(files)
    artifact = artifact_create(team=version.line.team, kind=Artifact.Kind.MODEL, files=files)
    reason = f"copied {len(files)} files"
    apply_transition(
        version,
        MODEL,
        ModelEvent.IMPORT,
        into=ModelVersionTransition,
        at=at,
        reason=reason,
        artifact=artifact,
        **version_facts(config=config, parameters=parameters, names=_names(version)),
    )
    publish(
        "model.imported",
        event_uid=new_uid(),
        version_uid=version.uid,
        reason=reason,
        at=at.isoformat(),
    )


def _names(version: ModelVersion) -> list[str]:
    """What its origin is called: a hub's repository, or a folder."""
    fetched = HubImport.objects.filter(version=version).values_list("repository", flat=True)
    return [*fetched, version.source_path.rstrip("/").rpartition("/")[2]]


@transaction.atomic
def model_version_failed(*, version: ModelVersion, reason: str, at: datetime) -> None:
    apply_transition(
        version, MODEL, ModelEvent.FAIL, into=ModelVersionTransition, at=at, reason=reason
    )
    publish(
        "model.refused",
        event_uid=new_uid(),
        version_uid=version.uid,
        reason=reason,
        at=at.isoformat(),
    )


@transaction.atomic
def model_version_retry(*, version: ModelVersion, actor: User, at: datetime) -> None:
    """:raises IllegalTransition: if its import has not failed."""
    audit(
        actor=actor,
        action="model.retry",
        team=version.line.team,
        uid=version.uid,
        name=str(version),
    )
    apply_transition(
        version,
        MODEL,
        ModelEvent.RETRY,
        into=ModelVersionTransition,
        at=at,
        reason="asked to try again",
        actor=actor.username,
    )
