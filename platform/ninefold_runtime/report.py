"""Telling the control plane how it goes, and handing over what came out. Standard library only.

::

    POST {url}/progress        {"points": [{"step": 10, "loss": 1.2, …}, {"checkpoint": {"step": 10}}]}
    PUT  {url}/files/{path}    the file, with its SHA-256 in a header
    PUT  {url}/manifest        last: every file with size and digest, and the metrics

Progress is sent by a thread of its own, so that a slow or absent control plane never slows training; it is
printed as well, which is the log of the job. Files and the manifest are the result: they are sent in the
foreground and repeated until they arrive, are refused, or patience ends.
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

from ninefold_runtime.backlog import Backlog, Point
from ninefold_runtime.exits import BadInput, NotReported

_TIMEOUT_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 30.0
_POINTS_A_REQUEST = 200
_POINTS_KEPT = 4000
_CHUNK = 1024 * 1024


class _Away(Exception):
    """The control plane cannot take it now; the same request may succeed later."""


class _Refused(Exception):
    """The control plane will never take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the attempt reports, and as whom."""

    url: str
    token: str

    @classmethod
    def of_process(cls) -> Address | None:
        """None where nobody listens.

        :raises BadInput: if the URL is not http(s).
        """
        url = os.environ.get("NINEFOLD_REPORT_URL", "").rstrip("/")
        if not url:
            return None
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise BadInput(f"NINEFOLD_REPORT_URL must be an http(s) address, not {url!r}")
        return cls(url=url, token=os.environ.get("NINEFOLD_ATTEMPT_TOKEN", ""))


class Reporter:
    """The process's line to the control plane; use it as a context manager."""

    def __init__(
        self,
        address: Address | None,
        *,
        patience_seconds: float = 600.0,
        first_pause_seconds: float = 0.5,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._address = address
        self._patience = patience_seconds
        self._first_pause = first_pause_seconds
        self._say = say or _print
        self._backlog = Backlog(limit=_POINTS_KEPT)
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
        point = {name: _finite(value) for name, value in values.items() if value is not None}
        self._say(in_words(point))
        self._note(point)

    def checkpoint(self, *, step: int) -> None:
        self._say(f"checkpoint saved at step {step}")
        self._note({"checkpoint": {"step": step}})

    def message(self, text: str) -> None:
        """A line of the log only."""
        self._say(text)

    def flush(self, *, within_seconds: float) -> bool:
        """Wait until every point has been sent; False if some are still here after that time."""
        with self._wake:
            return self._wake.wait_for(
                lambda: self._muted or not (self._backlog or self._in_flight), within_seconds
            )

    def deliver(self, folder: Path, *, kind: str, metrics: Mapping[str, Any]) -> None:
        """Send every file below the folder, then the manifest that makes them the result.

        :raises NotReported: if the control plane refuses one, or stays away longer than patience.
        """
        files = [_described(path, folder) for path in _files_below(folder)]
        numbers = {name: _finite(value) for name, value in metrics.items()}
        manifest = {"kind": kind, "files": files, "metrics": numbers}
        if self._address is None:
            self._say(f"{len(files)} files are ready; there is nobody to report to")
            return
        self.flush(within_seconds=30.0)
        for file in files:
            self._say(f"uploading {file['path']} ({file['size']} bytes)")
            self._insist(
                "PUT",
                f"/files/{quote(file['path'])}",
                body=folder / file["path"],
                headers={"X-Content-SHA256": file["sha256"]},
            )
        self._insist("PUT", "/manifest", body=_json(manifest), headers=_JSON)
        self._say(f"handed over {len(files)} files")

    def _note(self, point: Point) -> None:
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
            away = self._try_to_send(batch)
            with self._wake:
                self._in_flight = 0
                if away:
                    self._backlog.put_back(batch)
                    self._wake.wait_for(lambda: self._closing, pause)
                self._wake.notify_all()
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS) if away else self._first_pause

    def _try_to_send(self, batch: list[Point]) -> bool:
        """True if the batch must be sent again."""
        try:
            self._request("POST", "/progress", body=_json({"points": batch}), headers=_JSON)
        except _Away:
            return True
        except _Refused as refusal:
            self._say(f"progress is no longer reported: {refusal}")
            with self._wake:
                self._muted = True
        return False

    def _insist(
        self, method: str, path: str, *, body: bytes | Path, headers: Mapping[str, str]
    ) -> None:
        give_up_at = time.monotonic() + self._patience
        pause = self._first_pause
        while True:
            try:
                self._request(method, path, body=body, headers=headers)
                return
            except _Refused as refusal:
                raise NotReported(f"the control plane refused {path}: {refusal}") from refusal
            except _Away as away:
                if time.monotonic() + pause > give_up_at:
                    raise NotReported(
                        f"{path} could not be handed over in {self._patience:.0f} s: {away}"
                    ) from away
                self._say(f"{path} is tried again in {pause:.1f} s: {away}")
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _request(
        self, method: str, path: str, *, body: bytes | Path, headers: Mapping[str, str]
    ) -> None:
        """:raises _Away: if it may succeed later. :raises _Refused: if it never will."""
        if self._address is None:
            return
        parts = urlsplit(self._address.url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_SECONDS)
        sent = {**headers, "Authorization": f"Bearer {self._address.token}"}
        try:
            with io.BytesIO(body) if isinstance(body, bytes) else body.open("rb") as content:
                sent["Content-Length"] = str(content.seek(0, os.SEEK_END))
                content.seek(0)
                status, text = _exchange(connection, method, parts.path + path, content, sent)
        except (ConnectionError, TimeoutError, http.client.HTTPException) as error:
            raise _Away(f"{type(error).__name__}: {error}") from error
        except OSError as error:
            if error.filename is not None:
                raise
            raise _Away(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if status >= 500 or status in (408, 425, 429):
            raise _Away(f"it answered {status}")
        if status >= 300:
            raise _Refused(f"it answered {status}: {text}")


_JSON = {"Content-Type": "application/json"}


def in_words(point: Mapping[str, Any]) -> str:
    """One line for the log: ``step 10/120 · loss 1.234 · 850 tokens/s · 95 s left``."""
    words = []
    if "step" in point:
        of = f"/{point['total_steps']}" if "total_steps" in point else ""
        words.append(f"step {point['step']}{of}")
    for name, value in point.items():
        if value is None:
            words.append(f"{name.replace('_', ' ')} is not a number")
        elif name == "tokens_per_second":
            words.append(f"{value:.0f} tokens/s")
        elif name == "eta_seconds":
            words.append(f"{value:.0f} s left")
        elif name not in ("step", "total_steps"):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            words.append(f"{name.replace('_', ' ')} {shown}")
    return " · ".join(words)


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    body: BinaryIO,
    headers: Mapping[str, str],
) -> tuple[int, str]:
    """The status of the answer, and its reason in words."""
    try:
        connection.request(method, target, body, dict(headers))
    except (BrokenPipeError, ConnectionResetError):
        # A server that refuses a body early closes its side; its answer may still be readable.
        pass
    response = connection.getresponse()
    return response.status, _reason(response.read(64 * 1024))


def _reason(body: bytes) -> str:
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
        path for path in folder.rglob("*") if path.is_file() and not _through_link(path, folder)
    )


def _through_link(path: Path, folder: Path) -> bool:
    return any(each.is_symlink() for each in (path, *path.parents) if each.is_relative_to(folder))


def _described(path: Path, folder: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    name = path.relative_to(folder).as_posix()
    return {"path": name, "size": path.stat().st_size, "sha256": digest.hexdigest()}


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _finite(value: Any) -> Any:
    """JSON knows neither infinity nor NaN; such a figure is sent as null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print(text: str) -> None:
    print(text, flush=True)
