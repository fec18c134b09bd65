"""Inputs by presigned URL: a cache of blobs on a node, shared by its workloads. Standard library only.

::

    <root>/sha256/ab/cdef…         0444  a verified blob; its modification time is its last use
    <root>/partial/<hex>.<size>    0600  a download in progress or broken off, locked by who continues it
    <root>/lock                          held while room is made

A download continues where an earlier one stopped, in this process or another, and gets its name only after its
SHA-256 was verified. Before each, room is made: blobs are evicted in order of last use until the cache with all
unfinished downloads at their full size fits the limit. Blobs used within ``hold_seconds``, and those to which hard
links exist elsewhere, are not evicted. Before the first, all of them together are checked against the limit and
the free space of the disk: what cannot end does not begin.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ninefold_runtime.exit_codes import DiskFull, InvalidTaskInput, TaskError

_CHUNK = 1 << 20
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_RANGE = re.compile(r"bytes (\d+)-")
_PROGRESS = re.compile(r"downloading inputs: (\d+) of \d+ bytes")
#: Answers after which the same request may succeed.
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
#: Times that a file is downloaded again from its start because its bytes had another digest.
_DAMAGED_ATTEMPTS = 2
#: Seconds between two lines of progress, and between two calls of ``check``.
_REPORT_EVERY, _CHECK_EVERY = 10.0, 0.5

Report = Callable[[str], None]


def _nothing() -> None:
    pass


def downloaded_bytes(line: str) -> int | None:
    """How many bytes of the inputs a line of progress says are in the cache; None if it says nothing of it."""
    found = _PROGRESS.search(line)
    return int(found[1]) if found else None


def store_certificates(authorities: str | None = None) -> ssl.SSLContext | None:
    """Trust in the artifact store: the authorities of this system and those of a PEM file; None: the former only.

    :param authorities: path of the file; None: that of ``NINEFOLD_S3_CA_FILE``.
    :raises InvalidTaskInput: if the file cannot be read.
    """
    if authorities is None:
        authorities = os.environ.get("NINEFOLD_S3_CA_FILE", "")
    if not authorities:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(authorities)
    except OSError as error:
        raise InvalidTaskInput(
            f"the certificates of NINEFOLD_S3_CA_FILE, {authorities}, cannot be read: {error}"
        ) from error
    return context


def untrusted_store(error: ssl.SSLCertVerificationError) -> str:
    """What to do about a certificate that this machine does not trust; the message is for the user."""
    return (
        f"the certificate of the artifact store is not trusted: {error.verify_message}; the operator sets "
        "NINEFOLD_S3_CA_FILE to the certificate of its authority"
    )


class InputUnavailable(TaskError):
    """An input cannot be downloaded; the message is for the user."""


class CacheFull(TaskError):
    """The cache has no room for an input; the message is for the user."""


@dataclass(frozen=True)
class RemoteBlob:
    """A blob and where it can be downloaded. The URL is a secret."""

    #: ``sha256:<64 hex>``.
    digest: str
    #: In bytes.
    size: int
    url: str

    def __post_init__(self) -> None:
        """:raises InvalidTaskInput: if a value cannot be used."""
        if not _DIGEST.fullmatch(self.digest):
            raise InvalidTaskInput(f"a digest must be sha256:<64 hex>, got {self.digest!r}")
        if self.size < 0:
            raise InvalidTaskInput(
                f"the size of {self.digest} is {self.size}; it must be at least 0"
            )
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise InvalidTaskInput(f"the URL of {self.digest} must begin with http:// or https://")


class _Interrupted(Exception):
    """The connection failed; the rest can be requested."""


class WeightCache:
    """Blobs on this node."""

    def __init__(
        self,
        root: Path,
        *,
        limit: int,
        hold_seconds: float = 900.0,
        attempts: int = 8,
        timeout_seconds: float = 60.0,
        first_pause_seconds: float = 0.5,
        concurrency: int = 4,
        authorities: str | None = None,
    ) -> None:
        """:param limit: bytes of the cache.
        :param attempts: failures in a row without progress after which a download is given up.
        :param authorities: see ``store_certificates``.
        :raises InvalidTaskInput: if the authorities cannot be read.
        """
        self.root = root
        self.limit = limit
        self._hold = hold_seconds
        self._attempts = attempts
        self._timeout = timeout_seconds
        self._first_pause = first_pause_seconds
        self._concurrency = concurrency
        self._certificates = store_certificates(authorities)

    def path(self, digest: str) -> Path:
        name = digest.removeprefix("sha256:")
        return self.root / "sha256" / name[:2] / name[2:]

    def fetch(
        self, blobs: Iterable[RemoteBlob], *, report: Report, check: Callable[[], None] = _nothing
    ) -> None:
        """Have all of the blobs here.

        :param check: called by this thread twice a second; what it raises ends the downloads.
        :raises InputUnavailable: if one cannot be downloaded.
        :raises CacheFull: if they do not fit.
        :raises DiskFull: if the disk has no room.
        """
        wanted = {blob.digest: blob for blob in blobs}
        total = sum(blob.size for blob in wanted.values())
        if total > self.limit:
            raise CacheFull(
                f"the inputs have {total} bytes; the weight cache is limited to {self.limit} bytes: "
                "increase its limit"
            )
        for folder in ("sha256", "partial"):
            (self.root / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        progress = _Progress()
        # Use first what is here: then making room does not evict it.
        missing = [blob for blob in wanted.values() if not self._use(blob)]
        progress.add(total - sum(blob.size for blob in missing))
        report(
            f"{len(wanted) - len(missing)} of {len(wanted)} files are in the weight cache; "
            f"{sum(blob.size for blob in missing)} bytes to download"
        )
        # The largest first: the last one then takes the least time alone.
        missing.sort(key=lambda blob: -blob.size)
        self._check_room(missing)
        with ThreadPoolExecutor(self._concurrency, "download") as pool:
            tasks = {pool.submit(self._ensure, blob, progress) for blob in missing}
            reported_at = time.monotonic()
            try:
                while tasks:
                    done, tasks = wait(tasks, _CHECK_EVERY, FIRST_COMPLETED)
                    for task in done:
                        task.result()
                    check()
                    if time.monotonic() - reported_at > _REPORT_EVERY:
                        reported_at = time.monotonic()
                        report(f"downloading inputs: {progress.done} of {total} bytes")
            except BaseException:
                progress.stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _use(self, blob: RemoteBlob) -> bool:
        """Whether it is here; then it counts as used now."""
        path = self.path(blob.digest)
        try:
            if path.stat().st_size != blob.size:
                return False
            os.utime(path)
        except FileNotFoundError:
            return False
        return True

    def _ensure(self, blob: RemoteBlob, progress: _Progress) -> None:
        name = f"{blob.digest.removeprefix('sha256:')}.{blob.size}"
        partial = self.root / "partial" / name
        try:
            with _locked_file(partial, waiting=lambda: self._use(blob)) as handle:
                if handle is None:
                    progress.add(blob.size)
                    return
                # Now it counts in full, whoever makes room next.
                self._make_room(blob)
                self._download(blob, handle, progress)
                os.fsync(handle)
                partial.chmod(0o444)
                target = self.path(blob.digest)
                target.parent.mkdir(exist_ok=True, mode=0o700)
                os.utime(partial)
                partial.replace(target)
        except CacheFull:
            with suppress(FileNotFoundError):
                partial.unlink()
            raise
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            with suppress(FileNotFoundError):
                partial.unlink()
            raise DiskFull(f"no space left in the weight cache {self.root}") from error

    def _check_room(self, missing: list[RemoteBlob]) -> None:
        """Whether all of them fit, after what may be evicted for them. Nothing is evicted here.

        :raises CacheFull: if the limit does not allow it.
        :raises DiskFull: if the disk has too little free space.
        """
        if not missing:
            return
        files = list(self._files())
        begun = {each.path.name: each for each in files if each.path.suffix}
        names = {f"{blob.digest.removeprefix('sha256:')}.{blob.size}" for blob in missing}
        wanted = sum(blob.size for blob in missing)
        # Parts of the missing blobs count in full as wanted.
        others = [each for each in files if each.path.name not in names]
        used = sum(each.size for each in others)
        newest, evicted = time.time() - self._hold, 0
        for each in sorted(others, key=lambda each: each.used_at):
            if used - evicted + wanted <= self.limit:
                break
            if each.used_at < newest and each.links == 1 and not each.path.suffix:
                evicted += each.size
        if used - evicted + wanted > self.limit:
            raise CacheFull(
                f"the weight cache {self.root} has too little room: {wanted} bytes are to be "
                f"downloaded, {used - evicted} of {self.limit} bytes are in use by other workloads; "
                "increase its limit, or wait until they end"
            )
        # Downloads in progress take the rest of their size as well.
        wanted += sum(each.size - each.stored for each in others)
        wanted -= sum(begun[name].stored for name in names & begun.keys())
        free = shutil.disk_usage(self.root).free
        if wanted > free + evicted:
            raise DiskFull(
                f"the disk of the weight cache {self.root} has too little free space: downloads need "
                f"{wanted} bytes, {free} bytes are free and {evicted} bytes can be evicted"
            )

    def _make_room(self, blob: RemoteBlob) -> None:
        """:raises CacheFull: if what may be evicted is not enough."""
        with (self.root / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            files = list(self._files())
            used = sum(each.size for each in files)
            newest = time.time() - self._hold
            for each in sorted(files, key=lambda each: each.used_at):
                if used <= self.limit:
                    return
                if each.used_at < newest and each.links == 1 and _evict(each.path):
                    used -= each.size
            if used > self.limit:
                raise CacheFull(
                    f"the weight cache {self.root} is full: {used - blob.size} of {self.limit} bytes "
                    f"are in use, and {blob.digest} has {blob.size} bytes; increase its limit, or "
                    "wait until other workloads end"
                )

    def _files(self) -> Iterator[_CachedFile]:
        for path in (*(self.root / "sha256").glob("*/*"), *(self.root / "partial").iterdir()):
            with suppress(FileNotFoundError):
                seen = path.stat()
                # Of a download in progress, its full size.
                size = int(path.suffix[1:]) if path.suffix else seen.st_size
                yield _CachedFile(
                    path=path,
                    size=size,
                    stored=min(size, seen.st_size),
                    used_at=seen.st_mtime,
                    links=seen.st_nlink,
                )

    def _download(self, blob: RemoteBlob, handle: int, progress: _Progress) -> None:
        for _ in range(_DAMAGED_ATTEMPTS):
            counted = self._receive(blob, handle, progress)
            if _digest_of(handle) == blob.digest:
                return
            os.ftruncate(handle, 0)
            progress.add(-counted)
        raise InputUnavailable(
            f"the downloaded bytes of {blob.digest} have another digest in {_DAMAGED_ATTEMPTS} "
            "attempts; check the network and the artifact store"
        )

    def _receive(self, blob: RemoteBlob, handle: int, progress: _Progress) -> int:
        """Receive what is missing; return the bytes of the file, as they were counted."""
        failures, pause = 0, self._first_pause
        size = os.fstat(handle).st_size
        if size > blob.size:
            os.ftruncate(handle, 0)
            size = 0
        progress.add(size)
        while size < blob.size:
            before = size
            try:
                self._receive_some(blob, handle, progress)
                failure = "the response ended before its announced length"
            except _Interrupted as error:
                failure = str(error)
            size = os.fstat(handle).st_size
            if size >= blob.size:
                break
            failures, pause = (failures, pause) if size <= before else (0, self._first_pause)
            failures += 1
            if failures >= self._attempts:
                raise InputUnavailable(
                    f"{blob.digest} could not be downloaded in {failures} attempts: {failure}"
                )
            if progress.stop.wait(pause):
                raise InputUnavailable("the download was cancelled, because another one failed")
            pause = min(2 * pause, 30.0)
        return size

    def _receive_some(self, blob: RemoteBlob, handle: int, progress: _Progress) -> None:
        """:raises _Interrupted: if the rest may be requested again."""
        size = os.fstat(handle).st_size
        request = urllib.request.Request(blob.url, headers={"Range": f"bytes={size}-"})  # noqa: S310 - checked
        try:
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=self._timeout, context=self._certificates
            ) as response:
                found = _RANGE.match(response.headers.get("Content-Range") or "")
                if (int(found[1]) if found else 0) != size:
                    # It does not support ranges.
                    os.ftruncate(handle, 0)
                    progress.add(-size)
                    size = 0
                os.lseek(handle, size, os.SEEK_SET)
                while chunk := response.read(min(_CHUNK, blob.size + 1 - size)):
                    size += len(chunk)
                    if size > blob.size:
                        os.ftruncate(handle, 0)
                        progress.add(-(size - len(chunk)))
                        raise InputUnavailable(
                            f"the response for {blob.digest} has more than {blob.size} bytes"
                        )
                    _write_all(handle, chunk)
                    progress.add(len(chunk))
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _TEMPORARY:
                    raise _Interrupted(f"the artifact store answered {error.code}") from error
                hint = "; its URL may have expired" if error.code in (400, 401, 403) else ""
                raise InputUnavailable(
                    f"the artifact store answered {error.code} for {blob.digest}{hint}"
                ) from None
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            raise _Interrupted(f"{type(error).__name__}: {error}") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise InputUnavailable(untrusted_store(error.reason)) from error
            raise _Interrupted(f"the artifact store cannot be reached: {error.reason}") from error


class _Progress:
    """Bytes that are here, over all downloads; and whether to give up."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.done = 0
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        """:raises InputUnavailable: if another download has failed."""
        with self._lock:
            self.done += size
        if self.stop.is_set():
            raise InputUnavailable("the download was cancelled, because another one failed")


@dataclass(frozen=True)
class _CachedFile:
    path: Path
    size: int
    #: Bytes of it on the disk: fewer while it is downloaded.
    stored: int
    used_at: float
    links: int


def _evict(path: Path) -> bool:
    """Delete the file unless a download holds it; whether it is gone."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


@contextmanager
def _locked_file(path: Path, *, waiting: Callable[[], bool]) -> Iterator[int | None]:
    """A descriptor of the file, locked; None once ``waiting`` says that there is nothing left to do.

    The holder may rename or delete the file: a descriptor whose file is no longer at ``path`` does not count.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if waiting():
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), path.stat()):
                        path.unlink()
                yield None
                return
            try:
                current = os.path.samestat(os.fstat(handle), path.stat())
            except FileNotFoundError:
                current = False
            if current:
                yield handle
                return
        finally:
            os.close(handle)


def _digest_of(handle: int) -> str:
    hashed = hashlib.sha256()
    offset = 0
    while chunk := os.pread(handle, _CHUNK, offset):
        hashed.update(chunk)
        offset += len(chunk)
    return f"sha256:{hashed.hexdigest()}"


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


def read_manifest(text: str) -> list[RemoteBlob]:
    """The blobs of ``{"files": [{"digest": …, "size": …, "url": …}]}``.

    :raises InvalidTaskInput: if it is anything else.
    """
    try:
        return [
            RemoteBlob(digest=str(each["digest"]), size=int(each["size"]), url=str(each["url"]))
            for each in json.loads(text)["files"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidTaskInput(f"the list of inputs cannot be read: {error!r}") from error


def main(arguments: list[str] | None = None) -> int:
    """Fetch the inputs of a workload; the exit code. A fault is one line on standard error."""
    parser = argparse.ArgumentParser(prog="ninefold_runtime.weight_cache", description=main.__doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="JSON file with the inputs")
    parser.add_argument("--cache", type=Path, required=True, help="folder of the cache")
    parser.add_argument("--limit", type=int, required=True, help="bytes of the cache")
    options = parser.parse_args(arguments)
    try:
        cache = WeightCache(options.cache, limit=options.limit)
        cache.fetch(read_manifest(options.manifest.read_text()), report=_print_line)
    except TaskError as error:
        print(error, file=sys.stderr)
        return int(error.code)
    except OSError as error:
        print(f"the inputs cannot be stored: {error}", file=sys.stderr)
        return 1
    return 0


def _print_line(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
