"""Model hubs: repository listings, the files that are imported, and verification of their digests.

::

    owner/name @ revision ──lookup──▶ RepositoryListing: commit, files with size and digest
                                          └─ importable: configuration, tokenizer, safetensors
    each file ──ranges──▶ partial file on disk ──complete──▶ digest verified ──▶ artifact store

Small files of a git repository have no SHA-256 but git's digest: SHA-1 over ``blob <size>\\0`` and the
content. One of the two is verified before a file is stored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from controlplane.domain.common.reasons import CodedError, Reason
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.registry.versions import ModelRefused, check_files

#: Owner and name; the syntax of both hubs.
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,199}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
#: Files imported with the weights: configuration, tokenizer, documentation, licence.
_IMPORTED_SUFFIXES = (".json", ".jinja", ".txt", ".model", ".tiktoken", ".md", ".safetensors")
_IMPORTED_NAMES = ("LICENSE", "LICENCE", "NOTICE")
#: Most files of a repository, and most bytes of a file.
MAX_FILES = 5000
MAX_FILE_SIZE = 1 << 40
_MAX_PATH_LENGTH = 300


class HubImportRefused(CodedError):
    """The repository cannot be imported; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    path: str
    #: Bytes.
    size: int
    #: Hexadecimal SHA-256 of the content; empty if the hub does not provide it.
    sha256: str = ""
    #: Hexadecimal git SHA-1; used if the hub provides no SHA-256.
    git_sha1: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "size": self.size,
            "sha256": self.sha256,
            "git_sha1": self.git_sha1,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryListing:
    """Files of a repository at one revision."""

    #: The commit that the revision resolved to at lookup; this commit is downloaded even if a
    #: branch meanwhile.
    commit: str
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def check_repository(repository: str, *, revision: str) -> None:
    """:raises HubImportRefused: unless repository and revision have the hubs' syntax."""
    if not _REPOSITORY.fullmatch(repository) or ".." in repository:
        raise HubImportRefused(
            Reason(
                "model_import.repository.invalid",
                "a repository must be owner/name, for example Qwen/Qwen3-8B; got {repository}",
                repository=repr(repository[:200]),
            )
        )
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise HubImportRefused(
            Reason(
                "model_import.revision.invalid",
                "a revision must be a branch, a tag or a commit; got {revision}",
                revision=repr(revision[:200]),
            )
        )


def importable_files(listing: RepositoryListing) -> RepositoryListing:
    """The files to import: configuration, tokenizer and safetensors at the top level of the repository.

    :raises HubImportRefused: if they are not a model that can be registered.
    """
    files = tuple(file for file in listing.files if _is_importable(file.path))
    try:
        check_files(frozenset(file.path for file in listing.files))
    except ModelRefused as refusal:
        raise HubImportRefused(str(refusal)) from None
    for file in files:
        check_file(file)
    if len(files) > MAX_FILES:
        raise HubImportRefused(
            Reason(
                "model_import.files.too_many",
                "the repository has {count} files; at most {limit} are allowed",
                count=len(files),
                limit=MAX_FILES,
            )
        )
    return RepositoryListing(commit=listing.commit, files=files)


def _is_importable(path: str) -> bool:
    return "/" not in path and (path.endswith(_IMPORTED_SUFFIXES) or path in _IMPORTED_NAMES)


def check_file(file: HubFile) -> None:
    """:raises HubImportRefused: if path, size or digest of the file are invalid."""
    if (
        not file.path.isprintable()
        or len(file.path) > _MAX_PATH_LENGTH
        or file.path.startswith(".")
    ):
        raise HubImportRefused(
            Reason(
                "model_import.file.invalid_name",
                "the repository has a file named {file}, which is not a valid file name",
                file=repr(file.path[:80]),
            )
        )
    if not 0 <= file.size <= MAX_FILE_SIZE:
        raise HubImportRefused(
            Reason(
                "model_import.file.too_large",
                "{file} has {size} bytes according to the hub; at most {limit} are allowed",
                file=file.path,
                size=file.size,
                limit=format_bytes(MAX_FILE_SIZE),
            )
        )
    known = _SHA256.fullmatch(file.sha256) or _SHA1.fullmatch(file.git_sha1)
    if not known:
        raise HubImportRefused(
            Reason(
                "model_import.file.digest_missing",
                "the hub provides no digest of {file}, so a damaged copy could not be detected",
                file=file.path,
            )
        )


class DigestVerifier:
    """Computes the digest of a file while it is read; ``verify`` compares it with the hub's."""

    def __init__(self, file: HubFile) -> None:
        self._file = file
        self._size = 0
        self._digest = (
            hashlib.sha256()
            if file.sha256
            # git's content id, not a protection against an attacker
            else hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
        )

    def observed(self, chunks: Iterable[bytes]) -> Iterable[bytes]:
        for chunk in chunks:
            self._digest.update(chunk)
            self._size += len(chunk)
            yield chunk

    def verify(self) -> None:
        """:raises HubImportRefused: if size or digest differ from the hub's."""
        expected = self._file.sha256 or self._file.git_sha1
        if self._size != self._file.size or self._digest.hexdigest() != expected:
            raise HubImportRefused(
                Reason(
                    "model_import.file.digest_mismatch",
                    "{file} is damaged: its digest is {digest}, but the hub reports "
                    "{expected}; retry to download it again",
                    file=self._file.path,
                    digest=self._digest.hexdigest(),
                    expected=expected,
                )
            )


def next_range_size(*, last: int, seconds: float, least: int, most: int) -> int:
    """Size of the next range request in bytes, so that a request takes between two and five seconds."""
    if seconds > 5:
        return max(least, last // 2)
    return min(most, last * 2) if seconds < 2 else last
