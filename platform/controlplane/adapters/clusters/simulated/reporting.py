"""The voice of simulated processes: what real ones report of themselves, said for them.

::

    POST {url}/progress     points, as training goes on
    PUT  {url}/files/{path} once its work is done: files of the right form, and hollow
    PUT  {url}/manifest     last; then the process ends well

A process that nobody speaks for is not lost: it stays at the end of its work until somebody does.
"""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from controlplane.adapters.clusters.simulated.records import Kept, Records, Report
from controlplane.domain.simulation import reports
from controlplane.domain.simulation.lifecycle import LaunchSnapshot, launch_snapshot

_POINTS_A_REQUEST = 200
_TIMEOUT_SECONDS = 30.0
_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


class Away(Exception):
    """Nobody hears it now; the same report may succeed later."""


class NotHeard(Exception):
    """Nobody will ever hear it, as after the end of its attempt."""


class Listener(Protocol):
    """Who hears reports. Each call raises ``Away`` or ``NotHeard`` if it was not heard."""

    def progress(self, report: Report, points: Sequence[Mapping[str, Any]]) -> None: ...

    def file(self, report: Report, path: str, content: bytes) -> None: ...

    def manifest(self, report: Report, manifest: Mapping[str, Any]) -> None: ...


class ByHttp:
    """Tells the control plane at the address that the Launch names, with its token."""

    def progress(self, report: Report, points: Sequence[Mapping[str, Any]]) -> None:
        self._send(report, "POST", "/progress", json.dumps({"points": points}).encode())

    def file(self, report: Report, path: str, content: bytes) -> None:
        headers = {
            "Content-Type": "application/octet-stream",
            "X-Content-SHA256": hashlib.sha256(content).hexdigest(),
        }
        self._send(report, "PUT", f"/files/{quote(path)}", content, headers)

    def manifest(self, report: Report, manifest: Mapping[str, Any]) -> None:
        self._send(report, "PUT", "/manifest", json.dumps(manifest).encode())

    def _send(
        self,
        report: Report,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str] = _JSON,
    ) -> None:
        parts = urlsplit(report.url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_SECONDS)
        sent = {**headers, "Authorization": f"Bearer {report.token}"}
        try:
            connection.request(method, parts.path + path, body=body, headers=sent)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise Away(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if status >= 500 or status in (408, 425, 429):
            raise Away(f"it answered {status}")
        if status >= 300:
            raise NotHeard(f"it answered {status}")


class Voice:
    """Speaks for the processes of one cluster; ``every`` is how often each is heard at most."""

    def __init__(self, records: Records, *, listener: Listener, every: timedelta) -> None:
        self._records = records
        self._listener = listener
        self._every = every

    def speak(self, *, at: datetime, most: int | None = None) -> int:
        """One turn: for each process that has something to say; say how many were spoken for.

        :raises Away: if nobody hears now; what was said before stays said.
        """
        faults = self._records.faults()
        spoken = 0
        for kept in self._records.unreported():
            snapshot = launch_snapshot(kept.record, faults, at)
            if snapshot.ended:
                # What it had not said yet is no longer wanted.
                self._records.handed_over(kept.record.name, at=at)
            elif kept.report is not None and self._is_due(kept, snapshot, at):
                points = reports.points(snapshot, after=kept.reported_step, faults=faults)
                self._tell(kept, kept.report, snapshot, points)
                spoken += 1
                if spoken == most:
                    break
        return spoken

    def _is_due(self, kept: Kept, snapshot: LaunchSnapshot, at: datetime) -> bool:
        if snapshot.finishing:
            return True
        fresh = kept.reported_at is None or at - kept.reported_at >= self._every
        return fresh and reports.step_of(snapshot) > kept.reported_step

    def _tell(
        self,
        kept: Kept,
        report: Report,
        snapshot: LaunchSnapshot,
        points: Sequence[Mapping[str, Any]],
    ) -> None:
        name = kept.record.name
        try:
            for start in range(0, len(points), _POINTS_A_REQUEST):
                self._listener.progress(report, points[start : start + _POINTS_A_REQUEST])
            if snapshot.finishing:
                self._hand_over(report, snapshot)
                self._records.handed_over(name, at=snapshot.at)
        except NotHeard:
            self._records.handed_over(name, at=snapshot.at)
        self._records.reported(name, step=reports.step_of(snapshot), at=snapshot.at)

    def _hand_over(self, report: Report, snapshot: LaunchSnapshot) -> None:
        kind, files, metrics = reports.output_files(
            snapshot, role=snapshot.record.locations[0].role
        )
        for path, content in files.items():
            self._listener.file(report, path, content)
        listed = [
            {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for path, content in files.items()
        ]
        self._listener.manifest(report, {"kind": kind, "files": listed, "metrics": metrics})
