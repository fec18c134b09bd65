"""The manifest of a backup: its content, and how to verify that it is complete."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

FORMAT = 1
NAME = "manifest.json"
BLOB_LIST = "blobs.gz"
_CHUNK = 1 << 20


class BackupRefused(Exception):
    """The backup cannot be created or restored; the message says why. Nothing has been changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChecksum:
    """A file of the backup, with what it must be."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupTableFile:
    name: str
    columns: tuple[str, ...]
    rows: int
    file: FileChecksum


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    format: int
    #: Version of the product that created it.
    product: str
    created_at: str
    #: Applied migrations of each app, in order of name.
    migrations: Mapping[str, tuple[str, ...]]
    tables: tuple[BackupTableFile, ...]
    #: Last value of each sequence, and whether it has been handed out.
    sequences: Mapping[str, tuple[int, bool]]
    blob_list: FileChecksum
    blob_count: int
    #: Bytes of all blobs.
    blob_size: int
    #: False: the blobs are listed, their bytes are elsewhere.
    blobs_included: bool
    #: Blobs that a row names and the store had lost.
    blobs_missing: tuple[str, ...]
    #: Of the keys that secrets were encrypted by; the keys themselves are never in a backup.
    key_fingerprints: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """As the last file of the backup: it appears whole or not at all."""
        body = asdict(self)
        text = json.dumps({**body, "seal": _manifest_digest(body)}, indent=1, ensure_ascii=False)
        partial = folder / f".{NAME}"
        with partial.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(folder / NAME)

    @classmethod
    def read(cls, folder: Path) -> BackupManifest:
        """:raises BackupRefused: if there is none, or it is not as it was written."""
        path = folder / NAME
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BackupRefused(
                f"{folder} is no backup: it has no {NAME}, which is written last; was it cut off?"
            ) from None
        except (OSError, ValueError) as error:
            raise BackupRefused(f"{path} cannot be read: {error}") from None
        if not isinstance(body, dict) or body.pop("seal", None) != _manifest_digest(body):
            raise BackupRefused(f"{path} is damaged: it is not as it was written")
        if body.get("format") != FORMAT:
            raise BackupRefused(
                f"{folder} has format {body.get('format')}; this version reads {FORMAT}"
            )
        return _manifest_from_json(body)


def _manifest_from_json(body: dict[str, Any]) -> BackupManifest:
    # Backups of version 0.1.0 call it made_at.
    if "made_at" in body:
        body["created_at"] = body.pop("made_at")
    body["migrations"] = {app: tuple(names) for app, names in body["migrations"].items()}
    body["sequences"] = {name: tuple(value) for name, value in body["sequences"].items()}
    body["blob_list"] = FileChecksum(**body["blob_list"])
    body["blobs_missing"] = tuple(body["blobs_missing"])
    body["key_fingerprints"] = tuple(body["key_fingerprints"])
    body["tables"] = tuple(
        BackupTableFile(
            name=table["name"],
            columns=tuple(table["columns"]),
            rows=table["rows"],
            file=FileChecksum(**table["file"]),
        )
        for table in body["tables"]
    )
    return BackupManifest(**body)


def _manifest_digest(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def file_checksum(path: Path, *, folder: Path) -> FileChecksum:
    """Return path in the backup, size and digest of the file."""
    with path.open("rb") as stream:
        digest, size = stream_digest_and_size(stream)
    return FileChecksum(path=str(path.relative_to(folder)), size=size, digest=digest)


def verify_checksum(checksum: FileChecksum, *, folder: Path) -> None:
    """:raises BackupRefused: if the file is missing, cut off or changed."""
    path = folder / checksum.path
    if not path.is_file():
        raise BackupRefused(f"the backup is damaged: {checksum.path} is missing")
    size = path.stat().st_size
    if size != checksum.size:
        raise BackupRefused(
            f"the backup is damaged: {checksum.path} has {size} bytes instead of {checksum.size}"
        )
    with path.open("rb") as stream:
        digest, _ = stream_digest_and_size(stream)
    if digest != checksum.digest:
        raise BackupRefused(f"the backup is damaged: the content of {checksum.path} has changed")


def stream_digest_and_size(stream: BinaryIO) -> tuple[str, int]:
    """SHA-256 in hexadecimal digits, and bytes, from here to the end."""
    hashed, size = hashlib.sha256(), 0
    while chunk := stream.read(_CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return hashed.hexdigest(), size
