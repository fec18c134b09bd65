"""Outputs straight to the artifact store, by presigned URLs from the control plane. Standard library only.

::

    POST {url}/uploads            {"path", "size", "sha256"} → {"upload", "parts": [{"url", "offset", "size"}]}
    PUT  each part's URL          the bytes of the part
    POST {url}/uploads/complete   {"upload"}                 → the control plane has verified and stored the file

A part that fails is sent again after a pause that doubles; a file whose bytes arrived changed is sent again as a
whole. URLs expire: after a refused part the first request is repeated, which returns new ones for the same upload.
What does not arrive in this way is left to the caller, who sends it to the control plane.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from ninefold_runtime.weight_cache import untrusted_store

#: Smaller files go to the control plane: three requests take longer than one.
SMALLEST = 1 << 20
_CHUNK = 1 << 20
_CONNECT_SECONDS, _SEND_SECONDS = 10.0, 60.0
_LONGEST_PAUSE_SECONDS = 30.0
#: Bytes a second at which the control plane reads a file again, at the least: for its time-out.
_VERIFIED_A_SECOND = 20 << 20
#: Answers after which the same request cannot succeed.
_FINAL = frozenset({401, 403, 404, 405, 501})
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')

#: Sends JSON to a path of the attempt and returns what the control plane answers; the last argument is a time-out.
Post = Callable[[str, Mapping[str, Any], float], Mapping[str, Any]]


class DirectUploadRefused(Exception):
    """The control plane refuses a request with that status, or does not answer (0)."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class _PartFailed(Exception):
    """A part cannot be sent."""


class _PartInterrupted(Exception):
    """A part did not arrive; the same request may succeed."""


class _PartDenied(_PartFailed):
    """The store denies access to the URL of a part; it may have expired."""


@dataclass(frozen=True)
class _Part:
    url: str
    offset: int
    size: int


@dataclass(frozen=True)
class _StartedUpload:
    upload: str
    parts: list[_Part]


class DirectUploads:
    """Uploads of one task. After the first file that could not be sent, no other is tried."""

    def __init__(
        self,
        post: Post,
        *,
        log: Callable[[str], None],
        attempts: int = 5,
        first_pause_seconds: float = 0.5,
        concurrency: int = 4,
        smallest: int = SMALLEST,
        otherwise: str = "is sent to the control plane instead",
        cancelled: threading.Event | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        """:param post: raises ``DirectUploadRefused`` if the control plane refuses a request, or does not answer.
        :param attempts: how often a part is sent; a file whose bytes arrive changed is sent at most twice.
        :param otherwise: what the log says of a file that could not be sent.
        :param cancelled: once set, no more bytes are sent.
        :param certificates: trusted for the URLs of parts; None: the authorities of this system.
        """
        self._post = post
        self._log = log
        self._attempts = attempts
        self._first_pause = first_pause_seconds
        self._concurrency = concurrency
        self._smallest = smallest
        self._otherwise = otherwise
        self._cancelled = cancelled or threading.Event()
        self._certificates = certificates
        self._usable = True
        #: Why a file could not be sent.
        self.failure = ""

    def upload(self, file: Path, *, path: str, size: int, sha256: str) -> bool:
        """Whether the file is stored now."""
        if not self._usable or size < self._smallest:
            return False
        announced = {"path": path, "size": size, "sha256": sha256}
        for _ in range(2):
            try:
                started = self._start(announced)
                if not started.parts:
                    break
                self._send_parts(file, started, announced)
                self._post(
                    "/uploads/complete",
                    {"upload": started.upload},
                    _SEND_SECONDS + size / _VERIFIED_A_SECOND,
                )
                return True
            except DirectUploadRefused as refusal:
                if refusal.status != http.HTTPStatus.CONFLICT:
                    self._log(f"{path} {self._otherwise}: {refusal}")
                    self.failure = str(refusal)
                    break
                self._log(f"{path} is uploaded again: {refusal}")
                self.failure = str(refusal)
            except _PartFailed as failure:
                self._log(f"{path} {self._otherwise}: {failure}")
                self.failure = str(failure)
                break
        self._usable = False
        return False

    def _start(self, announced: Mapping[str, Any]) -> _StartedUpload:
        """Start an upload, or get new URLs of the same one.

        :raises DirectUploadRefused: if the control plane refuses it.
        """
        started = self._post("/uploads", announced, _SEND_SECONDS)
        parts = [
            _Part(url=str(each["url"]), offset=int(each["offset"]), size=int(each["size"]))
            for each in started.get("parts", ())
        ]
        return _StartedUpload(upload=str(started.get("upload", "")), parts=parts)

    def _send_parts(
        self, file: Path, started: _StartedUpload, announced: Mapping[str, Any]
    ) -> None:
        """Send every part, with new URLs after these have expired.

        :raises _PartFailed: if one cannot be sent; then the others are given up.
        :raises DirectUploadRefused: if there are no new URLs; with 409 if the upload does not exist any more.
        """
        pending, denials = started.parts, 0
        while unsent := self._send_until_denied(file, pending):
            denials = denials + 1 if len(unsent) == len(pending) else 0
            if denials == self._attempts:
                raise _PartFailed("the artifact store denies access to the URLs of parts")
            again = self._start(announced)
            if again.upload != started.upload:
                raise DirectUploadRefused("its upload was aborted", status=http.HTTPStatus.CONFLICT)
            offsets = {part.offset for part in unsent}
            pending = [part for part in again.parts if part.offset in offsets]

    def _send_until_denied(self, file: Path, parts: list[_Part]) -> list[_Part]:
        """The parts that were not sent because the URL of one has expired.

        :raises _PartFailed: if one cannot be sent.
        """
        stop = threading.Event()
        with ThreadPoolExecutor(self._concurrency, "upload") as pool:
            try:
                sending = [pool.submit(self._send_part, file, part, stop) for part in parts]
                sent = [each.result() for each in sending]
                return [part for part, done in zip(parts, sent, strict=True) if not done]
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _send_part(self, file: Path, part: _Part, stop: threading.Event) -> bool:
        """Whether it was sent; False if the URL of a part has expired.

        :raises _PartFailed: if it cannot be sent.
        """
        pause, failure = self._first_pause, ""
        for number in range(self._attempts):
            if number:
                stop.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            if stop.is_set():
                return False
            try:
                _put(file, part, cancelled=self._cancelled, certificates=self._certificates)
                return True
            except _PartDenied:
                stop.set()
                return False
            except _PartInterrupted as error:
                failure = str(error)
        raise _PartFailed(
            f"the part at byte {part.offset} did not arrive in {self._attempts} attempts: {failure}"
        )


def _put(
    file: Path,
    part: _Part,
    *,
    cancelled: threading.Event | None = None,
    certificates: ssl.SSLContext | None = None,
) -> None:
    """Messages never contain the URL, which is a secret.

    :raises _PartInterrupted: if it may arrive the next time.
    :raises _PartFailed: if it never will, or not by this URL.
    """
    url = urlsplit(part.url)
    host = url.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, url.port, timeout=_CONNECT_SECONDS, context=certificates)
        if url.scheme == "https"
        else http.client.HTTPConnection(host, url.port, timeout=_CONNECT_SECONDS)
    )
    digest = hashlib.md5(usedforsecurity=False)

    def note(chunk: bytes) -> None:
        if cancelled is not None and cancelled.is_set():
            raise _PartFailed("the upload was cancelled")
        digest.update(chunk)

    try:
        connection.connect()
        connection.sock.settimeout(_SEND_SECONDS)
        with file.open("rb") as content:
            content.seek(part.offset)
            connection.request(
                "PUT",
                f"{url.path}?{url.query}",
                body=_hashed(content, part.size, note),
                headers={"Content-Length": str(part.size)},
            )
        response = connection.getresponse()
        response.read(_CHUNK)
    except ssl.SSLCertVerificationError as error:
        raise _PartFailed(untrusted_store(error)) from error
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise _PartInterrupted(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if response.status in _FINAL:
        denied = response.status == http.HTTPStatus.FORBIDDEN
        kind_of_failure = _PartDenied if denied else _PartFailed
        raise kind_of_failure(f"the artifact store answered {response.status}")
    if response.status >= 300:
        raise _PartInterrupted(f"the artifact store answered {response.status}")
    stored = _MD5.fullmatch(response.headers.get("ETag") or "")
    # With a key of the customer an ETag is no MD5.
    managed = "kms" in (response.headers.get("x-amz-server-side-encryption") or "")
    if stored and not managed and stored[1] != digest.hexdigest():
        raise _PartInterrupted("it arrived changed")


def _hashed(content: BinaryIO, size: int, update: Callable[[bytes], None]) -> Iterator[bytes]:
    while size and (chunk := content.read(min(_CHUNK, size))):
        update(chunk)
        size -= len(chunk)
        yield chunk
