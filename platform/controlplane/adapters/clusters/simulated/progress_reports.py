"""Progress reports of simulated processes, sent as real processes send theirs.

::

    POST {url}/progress     points, as training goes on
    PUT  {url}/files/{path} once the work is done: files of the right format without real content
    PUT  {url}/manifest     last; then the process exits with 0

A process without a reporter is not lost: it stays at the end of its work until its reports are sent.
"""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from controlplane.adapters.clusters.simulated.store import (
    ReportTarget,
    SimulationStore,
    StoredLaunch,
)
from controlplane.domain.simulation import reports
from controlplane.domain.simulation.launch_lifecycle import LaunchSnapshot, launch_snapshot

_POINTS_A_REQUEST = 200
_TIMEOUT_SECONDS = 30.0
_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


class ReceiverUnavailable(Exception):
    """No receiver now; the same report may succeed later."""


class ReportRejected(Exception):
    """It will never be accepted, as after the end of its attempt."""


class ReportReceiver(Protocol):
    """Receives reports. Each call raises ``ReceiverUnavailable`` or ``ReportRejected`` if it was not accepted."""

    def progress(self, report: ReportTarget, points: Sequence[Mapping[str, Any]]) -> None: ...

    def file(self, report: ReportTarget, path: str, content: bytes) -> None: ...

    def manifest(self, report: ReportTarget, manifest: Mapping[str, Any]) -> None: ...


class HttpReportReceiver:
    """Tells the control plane at the address that the Launch names, with its token."""

    def progress(self, report: ReportTarget, points: Sequence[Mapping[str, Any]]) -> None:
        self._send_request(report, "POST", "/progress", json.dumps({"points": points}).encode())

    def file(self, report: ReportTarget, path: str, content: bytes) -> None:
        headers = {
            "Content-Type": "application/octet-stream",
            "X-Content-SHA256": hashlib.sha256(content).hexdigest(),
        }
        self._send_request(report, "PUT", f"/files/{quote(path)}", content, headers)

    def manifest(self, report: ReportTarget, manifest: Mapping[str, Any]) -> None:
        self._send_request(report, "PUT", "/manifest", json.dumps(manifest).encode())

    def _send_request(
        self,
        report: ReportTarget,
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
            raise ReceiverUnavailable(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if status >= 500 or status in (408, 425, 429):
            raise ReceiverUnavailable(f"it answered {status}")
        if status >= 300:
            raise ReportRejected(f"it answered {status}")


class ProgressReporter:
    """Reports for the processes of one cluster; ``every`` is the minimum interval of each."""

    def __init__(
        self, records: SimulationStore, *, listener: ReportReceiver, every: timedelta
    ) -> None:
        self._records = records
        self._listener = listener
        self._every = every

    def send_reports(self, *, at: datetime, most: int | None = None) -> int:
        """One pass: report for each process with news; returns how many were reported.

        :raises ReceiverUnavailable: if there is no receiver now; earlier reports remain valid.
        """
        faults = self._records.faults()
        reported = 0
        for stored in self._records.unreported():
            current = launch_snapshot(stored.record, faults, at)
            if current.ended:
                # Its unsent reports are no longer accepted.
                self._records.record_handover(stored.record.name, at=at)
            elif stored.report is not None and self._is_due(stored, current, at):
                points = reports.simulated_progress_points(
                    current, after=stored.reported_step, faults=faults
                )
                self._send_progress(stored, stored.report, current, points)
                reported += 1
                if reported == most:
                    break
        return reported

    def _is_due(self, stored: StoredLaunch, current: LaunchSnapshot, at: datetime) -> bool:
        if current.finishing:
            return True
        fresh = stored.reported_at is None or at - stored.reported_at >= self._every
        return fresh and reports.completed_step(current) > stored.reported_step

    def _send_progress(
        self,
        stored: StoredLaunch,
        report: ReportTarget,
        current: LaunchSnapshot,
        points: Sequence[Mapping[str, Any]],
    ) -> None:
        name = stored.record.name
        try:
            for start in range(0, len(points), _POINTS_A_REQUEST):
                self._listener.progress(report, points[start : start + _POINTS_A_REQUEST])
            if current.finishing:
                self._send_outputs(report, current)
                self._records.record_handover(name, at=current.at)
        except ReportRejected:
            self._records.record_handover(name, at=current.at)
        self._records.reported(name, step=reports.completed_step(current), at=current.at)

    def _send_outputs(self, report: ReportTarget, current: LaunchSnapshot) -> None:
        kind, files, metrics = reports.simulated_output_files(
            current, role=current.record.locations[0].role
        )
        for path, content in files.items():
            self._listener.file(report, path, content)
        listed = [
            {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for path, content in files.items()
        ]
        self._listener.manifest(report, {"kind": kind, "files": listed, "metrics": metrics})
