"""Hears simulated processes inside this process, where no web server runs yet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from apps.jobs import selectors, services
from apps.jobs.models import Attempt
from controlplane.adapters.clusters.simulated.records import Report
from controlplane.adapters.clusters.simulated.reporting import NotHeard


class Directly:
    """Calls the services that the attempt's addresses call, with the same token."""

    def progress(self, report: Report, points: Sequence[Mapping[str, Any]]) -> None:
        services.progress_record(attempt=_attempt(report), points=points, at=timezone.now())

    def file(self, report: Report, path: str, content: bytes) -> None:
        services.file_receive(
            attempt=_attempt(report),
            path=path,
            sha256=hashlib.sha256(content).hexdigest(),
            chunks=[content],
        )

    def manifest(self, report: Report, manifest: Mapping[str, Any]) -> None:
        services.manifest_record(attempt=_attempt(report), manifest=manifest)


def _attempt(report: Report) -> Attempt:
    uid = report.url.rstrip("/").rpartition("/")[2]
    attempt = selectors.attempt_by_token(uid=uid, token=report.token)
    if attempt is None:
        raise NotHeard("the attempt has ended")
    return attempt
