"""Hubs of models: what a repository holds, which of it is taken, and how a file is known to be whole.

::

    owner/name @ revision ──look up──▶ Listing: commit, files with size and digest
                                          └─ wanted: configuration, tokenizer, safetensors
    each file ──pieces──▶ a part on disk ──all there──▶ digest compared ──▶ the artifact store

Small files of a git repository have no SHA-256 of their own but git's: SHA-1 over ``blob <size>\\0`` and the
content. Either is compared before a file is kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from controlplane.domain.common.resources import format_bytes
from controlplane.domain.models import ModelRefused, check_files

#: Owner and name, as both hubs allow them.
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,199}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
#: Files beside the weights that loading or understanding a model may need.
_WANTED_SUFFIXES = (".json", ".jinja", ".txt", ".model", ".tiktoken", ".md", ".safetensors")
_WANTED_NAMES = ("LICENSE", "LICENCE", "NOTICE")
#: No model has more files, and no file is larger.
MOST_FILES = 5000
LARGEST_FILE = 1 << 40
_LONGEST_PATH = 300


class HubRefused(Exception):
    """The repository cannot be imported; the message says what is wrong with what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    path: str
    #: Bytes.
    size: int
    #: Hexadecimal SHA-256 of the content, where the hub says it.
    sha256: str = ""
    #: Hexadecimal SHA-1 as git takes it, where the hub says only that.
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
class Listing:
    """What a repository holds at one revision."""

    #: The commit that the revision meant when it was looked up: what is downloaded, whatever happens to a
    #: branch meanwhile.
    commit: str
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def check_repository(repository: str, *, revision: str) -> None:
    """:raises HubRefused: unless both look as hubs write them."""
    if not _REPOSITORY.fullmatch(repository) or ".." in repository:
        raise HubRefused(
            f"a repository is owner/name, for example Qwen/Qwen3-8B; got {repository[:200]!r}"
        )
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise HubRefused(f"a revision is a branch, a tag or a commit; got {revision[:200]!r}")


def wanted(listing: Listing) -> Listing:
    """The files that are taken: configuration, tokenizer and safetensors at the top of the repository.

    :raises HubRefused: if they are no model that can be registered.
    """
    files = tuple(file for file in listing.files if _is_wanted(file.path))
    try:
        check_files(frozenset(file.path for file in listing.files))
    except ModelRefused as refusal:
        raise HubRefused(str(refusal)) from None
    for file in files:
        check_file(file)
    if len(files) > MOST_FILES:
        raise HubRefused(f"the repository has {len(files)} files; at most {MOST_FILES} are taken")
    return Listing(commit=listing.commit, files=files)


def _is_wanted(path: str) -> bool:
    return "/" not in path and (path.endswith(_WANTED_SUFFIXES) or path in _WANTED_NAMES)


def check_file(file: HubFile) -> None:
    """:raises HubRefused: if the hub says something of it that cannot be."""
    if not file.path.isprintable() or len(file.path) > _LONGEST_PATH or file.path.startswith("."):
        raise HubRefused(f"the repository names a file {file.path[:80]!r}, which is no plain name")
    if not 0 <= file.size <= LARGEST_FILE:
        raise HubRefused(
            f"{file.path} is said to have {file.size} bytes; at most {format_bytes(LARGEST_FILE)} "
            "are taken"
        )
    known = _SHA256.fullmatch(file.sha256) or _SHA1.fullmatch(file.git_sha1)
    if not known:
        raise HubRefused(
            f"the hub says no digest of {file.path}, so nobody could tell a damaged copy"
        )


class Check:
    """The digest of a file while it is read; ``finish`` says whether it is the hub's."""

    def __init__(self, file: HubFile) -> None:
        self._file = file
        self._size = 0
        self._digest = (
            hashlib.sha256()
            if file.sha256
            # git's name of the content, not a guard against an adversary
            else hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
        )

    def watched(self, chunks: Iterable[bytes]) -> Iterable[bytes]:
        for chunk in chunks:
            self._digest.update(chunk)
            self._size += len(chunk)
            yield chunk

    def finish(self) -> None:
        """:raises HubRefused: if something else arrived."""
        expected = self._file.sha256 or self._file.git_sha1
        if self._size != self._file.size or self._digest.hexdigest() != expected:
            raise HubRefused(
                f"{self._file.path} arrived damaged: its digest is {self._digest.hexdigest()}, the hub "
                f"says {expected}; it is fetched again when you try again"
            )


def piece_size(*, last: int, seconds: float, least: int, most: int) -> int:
    """How much to ask for next, so that a piece takes between two and five seconds on this line."""
    if seconds > 5:
        return max(least, last // 2)
    return min(most, last * 2) if seconds < 2 else last
