"""Reports to the control plane: progress points, and the upload of outputs. Standard library only.

::

    POST {url}/progress        {"points": [{"step": 10, "loss": 1.2, …}, {"checkpoint": {"step": 10}}]}
    PUT  {url}/files/{path}    the file, with its SHA-256 in a header; large ones go to the artifact store
                               (direct_uploads.py), where it signs URLs
    PUT  {url}/manifest        last: every file with size and digest, and the metrics
    PUT  {url}/checkpoint      the files of a complete checkpoint, which were uploaded like outputs
    GET  {url}/checkpoint      the newest checkpoint of the job, with URLs of its files

Progress is sent by a thread of its own, so that a slow or unreachable control plane never slows training; it is
printed as well, which is the log of the job. Files and the manifest are the result: they are sent in the
foreground and repeated until they arrive, are refused, or the time limit is reached.

While the control plane is unreachable a long run would queue points without end. Above the limit every second
plain point of the older half is dropped: the curve stays whole and loses detail. Checkpoints and evaluations
are few and stay longest.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

from ninefold_runtime.direct_uploads import SMALLEST, DirectUploadRefused, DirectUploads
from ninefold_runtime.exit_codes import InvalidTaskInput, ReportNotDelivered
from ninefold_runtime.weight_cache import store_certificates

_TIMEOUT_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 30.0
_POINTS_A_REQUEST = 200
_MAX_POINTS = 4000
_CHUNK = 1024 * 1024
#: Bytes; the URLs of a direct upload are the longest answer.
_LONGEST_ANSWER = 8 * 1024 * 1024


class _ControlPlaneUnavailable(Exception):
    """The control plane cannot take it now; the same request may succeed later."""


class _ReportRejected(Exception):
    """The control plane will never take it."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAddress:
    """Where the attempt reports, and as whom."""

    url: str
    token: str

    @classmethod
    def from_environment(cls) -> ReportAddress | None:
        """None without a report address.

        :raises InvalidTaskInput: if the URL is not http(s).
        """
        url = os.environ.get("NINEFOLD_REPORT_URL", "").rstrip("/")
        if not url:
            return None
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise InvalidTaskInput(f"NINEFOLD_REPORT_URL must be an http(s) address, not {url!r}")
        return cls(url=url, token=os.environ.get("NINEFOLD_ATTEMPT_TOKEN", ""))


class Reporter:
    """The process's line to the control plane; use it as a context manager."""

    def __init__(
        self,
        address: ReportAddress | None,
        *,
        patience_seconds: float = 600.0,
        first_pause_seconds: float = 0.5,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """:raises InvalidTaskInput: if the authorities of the artifact store cannot be read."""
        self._certificates = store_certificates() if address is not None else None
        self._address = address
        self._patience = patience_seconds
        self._first_pause = first_pause_seconds
        self._log = log or _print_line
        self._backlog = ProgressBacklog(limit=_MAX_POINTS)
        self._wake = threading.Condition()
        self._in_flight = 0
        self._closing = False
        self._muted = address is None
        self._sender = threading.Thread(target=self._send_forever, name="progress", daemon=True)

    def __enter__(self) -> Reporter:
        if self._address is not None:
            self._sender.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.flush(within_seconds=10.0)
        with self._wake:
            self._closing = True
            self._wake.notify_all()

    def progress(self, **values: Any) -> None:
        """Note one point and print it. Never blocks on the network and never fails."""
        point = {
            name: _replace_non_finite(value) for name, value in values.items() if value is not None
        }
        self._log(format_progress_point(point))
        self._write_point(point)

    def checkpoint(self, *, step: int) -> None:
        self._log(f"checkpoint saved at step {step}")
        self._write_point({"checkpoint": {"step": step}})

    def checkpoint_not_uploaded(self, *, step: int, error: str) -> None:
        """Warn that the checkpoint is not in the artifact store."""
        self._log(f"the checkpoint at step {step} was not uploaded: {error}")
        self._write_point({"checkpoint": {"step": step, "upload_error": error[:500]}})

    def upload_checkpoint(
        self, folder: Path, *, step: int, keep: int, cancelled: threading.Event
    ) -> int:
        """Store the files below the folder as a checkpoint of the job, then delete older ones; return its bytes.

        Nothing of it is used unless all of it has arrived.

        :param keep: checkpoints of the job that stay stored.
        :param cancelled: once set, the upload fails soon.
        :raises ReportNotDelivered: if it is not stored.
        """
        files = [_manifest_entry_of_file(path, folder) for path in _files_below(folder)]
        direct = DirectUploads(
            self._post_upload,
            log=self._log,
            first_pause_seconds=self._first_pause,
            otherwise="is not uploaded",
            cancelled=cancelled,
            certificates=self._certificates,
        )
        for file in files:
            if cancelled.is_set():
                raise ReportNotDelivered("the upload was cancelled")
            source = folder / file["path"]
            sent = {**file, "path": f".checkpoints/{step}/{file['path']}"}
            if direct.upload(source, **sent):
                continue
            if file["size"] >= SMALLEST:
                # Not through the web: there will be a newer checkpoint.
                raise ReportNotDelivered(direct.failure or "the artifact store signs no URLs")
            self._send_file(source, sent)
        stored = _encode_json({"step": step, "keep": keep, "files": files})
        self._send_until_accepted("PUT", "/checkpoint", body=stored, headers=_JSON)
        return sum(file["size"] for file in files)

    def stored_checkpoint(self) -> Mapping[str, Any]:
        """The newest checkpoint of the job in the artifact store: ``{"step", "files"}``; ``step`` is null if there
        is none, and each file has ``path``, ``digest``, ``size`` and a ``url`` that expires.

        :raises ReportNotDelivered: if the control plane refuses it, or stays away longer than patience.
        """
        try:
            answer = json.loads(
                self._send_until_answered("GET", "/checkpoint", body=b"", headers={})
            )
        except (_ReportRejected, ValueError) as error:
            raise ReportNotDelivered(f"the stored checkpoint is not known: {error}") from error
        return answer if isinstance(answer, dict) else {}

    def message(self, text: str) -> None:
        """A line of the log only."""
        self._log(text)

    def flush(self, *, within_seconds: float) -> bool:
        """Wait until every point has been sent; False if some are still here after that time."""
        with self._wake:
            return self._wake.wait_for(
                lambda: self._muted or not (self._backlog or self._in_flight), within_seconds
            )

    def deliver(self, folder: Path, *, kind: str, metrics: Mapping[str, Any]) -> None:
        """Send every file below the folder, then the manifest that completes the result.

        :raises ReportNotDelivered: if the control plane refuses one, or stays away longer than patience.
        """
        files = [_manifest_entry_of_file(path, folder) for path in _files_below(folder)]
        numbers = {name: _replace_non_finite(value) for name, value in metrics.items()}
        manifest = {"kind": kind, "files": files, "metrics": numbers}
        if self._address is None:
            self._log(f"{len(files)} files are ready; there is nobody to report to")
            return
        self.flush(within_seconds=30.0)
        direct = DirectUploads(
            self._post_upload,
            log=self._log,
            first_pause_seconds=self._first_pause,
            certificates=self._certificates,
        )
        for file in files:
            self._log(f"uploading {file['path']} ({file['size']} bytes)")
            if not direct.upload(folder / file["path"], **file):
                self._send_file(folder / file["path"], file)
        self._send_until_accepted("PUT", "/manifest", body=_encode_json(manifest), headers=_JSON)
        self._log(f"handed over {len(files)} files")

    def _send_file(self, source: Path, file: Mapping[str, Any]) -> None:
        self._send_until_accepted(
            "PUT",
            f"/files/{quote(file['path'])}",
            body=source,
            headers={"X-Content-SHA256": file["sha256"]},
        )

    def _write_point(self, point: Point) -> None:
        with self._wake:
            if not self._muted:
                self._backlog.add(point)
                self._wake.notify_all()

    def _send_forever(self) -> None:
        pause = self._first_pause
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closing or len(self._backlog) > 0)
                if self._closing:
                    return
                batch = self._backlog.take(_POINTS_A_REQUEST)
                self._in_flight = len(batch)
            away = self._try_to_send_progress(batch)
            with self._wake:
                self._in_flight = 0
                if away:
                    self._backlog.put_back(batch)
                    self._wake.wait_for(lambda: self._closing, pause)
                self._wake.notify_all()
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS) if away else self._first_pause

    def _try_to_send_progress(self, batch: list[Point]) -> bool:
        """True if the batch must be sent again."""
        try:
            self._send_request(
                "POST", "/progress", body=_encode_json({"points": batch}), headers=_JSON
            )
        except _ControlPlaneUnavailable:
            return True
        except _ReportRejected as refusal:
            self._log(f"progress is no longer reported: {refusal}")
            with self._wake:
                self._muted = True
        return False

    def _post_upload(self, path: str, body: Mapping[str, Any], timeout: float) -> Mapping[str, Any]:
        """:raises DirectUploadRefused: if the control plane refuses it, or stays away longer than patience."""
        try:
            content = self._send_until_answered(
                "POST", path, body=_encode_json(body), headers=_JSON, timeout=timeout
            )
            answer = json.loads(content)
        except _ReportRejected as refusal:
            raise DirectUploadRefused(str(refusal), status=refusal.status) from refusal
        except (ReportNotDelivered, ValueError) as error:
            raise DirectUploadRefused(str(error), status=0) from error
        return answer if isinstance(answer, dict) else {}

    def _send_until_accepted(
        self, method: str, path: str, *, body: bytes | Path, headers: Mapping[str, str]
    ) -> None:
        try:
            self._send_until_answered(method, path, body=body, headers=headers)
        except _ReportRejected as refusal:
            raise ReportNotDelivered(f"the control plane refused {path}: {refusal}") from refusal

    def _send_until_answered(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Path,
        headers: Mapping[str, str],
        timeout: float = _TIMEOUT_SECONDS,
    ) -> bytes:
        """:raises _ReportRejected: if it is refused.
        :raises ReportNotDelivered: if the control plane stays away longer than patience.
        """
        give_up_at = time.monotonic() + self._patience
        pause = self._first_pause
        while True:
            try:
                return self._send_request(method, path, body=body, headers=headers, timeout=timeout)
            except _ControlPlaneUnavailable as away:
                if time.monotonic() + pause > give_up_at:
                    raise ReportNotDelivered(
                        f"{path} could not be handed over in {self._patience:.0f} s: {away}"
                    ) from away
                self._log(f"{path} is tried again in {pause:.1f} s: {away}")
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _send_request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Path,
        headers: Mapping[str, str],
        timeout: float = _TIMEOUT_SECONDS,
    ) -> bytes:
        """The body of the answer.

        :raises _ControlPlaneUnavailable: if it may succeed later.
        :raises _ReportRejected: if it never will.
        """
        if self._address is None:
            return b""
        parts = urlsplit(self._address.url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        sent = {**headers, "Authorization": f"Bearer {self._address.token}"}
        try:
            with io.BytesIO(body) if isinstance(body, bytes) else body.open("rb") as content:
                sent["Content-Length"] = str(content.seek(0, os.SEEK_END))
                content.seek(0)
                status, answer = _exchange_http(
                    connection, method, parts.path + path, content, sent
                )
        except (ConnectionError, TimeoutError, http.client.HTTPException) as error:
            raise _ControlPlaneUnavailable(f"{type(error).__name__}: {error}") from error
        except OSError as error:
            if error.filename is not None:
                raise
            raise _ControlPlaneUnavailable(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if status >= 500 or status in (408, 425, 429):
            raise _ControlPlaneUnavailable(f"it answered {status}")
        if status >= 300:
            text = _refusal_reason(answer)
            raise _ReportRejected(f"it answered {status}: {text}", status=status)
        return answer


_JSON = {"Content-Type": "application/json"}


def format_progress_point(point: Mapping[str, Any]) -> str:
    """One line for the log: ``step 10/120 · loss 1.234 · 850 tokens/s · 95 s left``."""
    parts = []
    if "step" in point:
        of = f"/{point['total_steps']}" if "total_steps" in point else ""
        parts.append(f"step {point['step']}{of}")
    for name, value in point.items():
        if value is None:
            parts.append(f"{name.replace('_', ' ')} is not a number")
        elif name == "tokens_per_second":
            parts.append(f"{value:.0f} tokens/s")
        elif name == "eta_seconds":
            parts.append(f"{value:.0f} s left")
        elif name not in ("step", "total_steps"):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            parts.append(f"{name.replace('_', ' ')} {shown}")
    return " · ".join(parts)


def _exchange_http(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    body: BinaryIO,
    headers: Mapping[str, str],
) -> tuple[int, bytes]:
    """The status of the response, and the start of its body."""
    try:
        connection.request(method, target, body, dict(headers))
    except (BrokenPipeError, ConnectionResetError):
        # A server that refuses a body early closes its side; its answer may still be readable.
        pass
    response = connection.getresponse()
    return response.status, response.read(_LONGEST_ANSWER)


def _refusal_reason(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    try:
        problem = json.loads(text)
    except ValueError:
        return text[:500]
    detail = problem.get("detail") or problem.get("title") if isinstance(problem, dict) else None
    return str(detail or text)[:500]


def _files_below(folder: Path) -> list[Path]:
    """Regular files in a fixed order; links are not followed, since they could leave the folder."""
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and not _is_below_link(path, folder)
    )


def _is_below_link(path: Path, folder: Path) -> bool:
    return any(each.is_symlink() for each in (path, *path.parents) if each.is_relative_to(folder))


def _manifest_entry_of_file(path: Path, folder: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    name = path.relative_to(folder).as_posix()
    return {"path": name, "size": path.stat().st_size, "sha256": digest.hexdigest()}


def _encode_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _replace_non_finite(value: Any) -> Any:
    """JSON has neither infinity nor NaN; such a value is sent as null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_line(text: str) -> None:
    print(text, flush=True)


Point = dict[str, Any]

_PRECIOUS = frozenset({"checkpoint", "eval_loss"})


class ProgressBacklog:
    """A bounded queue of points in the order in which they came."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._points: list[Point] = []

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: Point) -> None:
        self._points.append(point)
        self._drop_every_second_point()

    def take(self, count: int) -> list[Point]:
        """Remove and return up to ``count`` of the oldest."""
        taken, self._points = self._points[:count], self._points[count:]
        return taken

    def put_back(self, points: Iterable[Point]) -> None:
        """Return what could not be sent to the front."""
        self._points[:0] = points
        self._drop_every_second_point()

    def _drop_every_second_point(self) -> None:
        if len(self._points) <= self._limit:
            return
        middle = len(self._points) // 2
        older, newer = self._points[:middle], self._points[middle:]
        plain = 0
        thinned = []
        for point in older:
            precious = not _PRECIOUS.isdisjoint(point)
            plain += not precious
            if precious or plain % 2:
                thinned.append(point)
        self._points = (thinned + newer)[-self._limit :]
