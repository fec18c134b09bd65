"""What a running job sends to its page: the loss curve, the log, its files."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors
from apps.jobs.models import Attempt, Job
from apps.models import selectors as models
from controlplane.domain.jobs import ENDED_JOB_STATES
from controlplane.ports.artifacts import BlobMissing
from controlplane.web.pages import STOP_POLLING

#: Bytes of one look at a log.
TAIL = 64 * 1024
#: Rows of the table behind the chart.
TABLE_ROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Whole characters of a log, and where to go on."""

    text: str
    offset: int
    complete: bool


def log_tail(attempt: Attempt, *, offset: int = -TAIL) -> Tail:
    """The text from ``offset`` on; negative counts from the end.

    A character that is cut at the end is left for the next look; at the start, only where the offset
    was counted from the end, its rest is dropped.
    """
    chunk = selectors.attempt_log(attempt, offset=offset, limit=TAIL)
    content = chunk.content
    if offset < 0:
        content = content.lstrip(bytes(range(0x80, 0xC0)))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content, final=chunk.complete)
    pending, _flags = decoder.getstate()
    return Tail(text=text, offset=chunk.next_offset - len(pending), complete=chunk.complete)


def loss_table(job: Job) -> list[dict[str, Any]]:
    """The curve's points thinned out evenly; the last one is always there."""
    points = selectors.curve_of(job)
    step = -(-len(points) // TABLE_ROWS) or 1
    return points[::-1][::step][::-1]


@login_required
def job_curve(request: SignedIn, uid: str) -> HttpResponse:
    """Points after a step: ``{"points": [{"step", "loss", …}], "ended": bool}``."""
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    curve = selectors.curve_of(job, after=_whole(request, "after", default=-1))
    return JsonResponse({"points": curve, "ended": job.state in ENDED_JOB_STATES})


@login_required
def job_log(request: SignedIn, uid: str) -> HttpResponseBase:
    """For htmx the lines after ``?offset=``, until the log is complete; else all of it as a file."""
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempt = _attempt(request, job)
    if not request.htmx:  # type: ignore[attr-defined]
        response = StreamingHttpResponse(
            _whole_log(attempt), content_type="text/plain; charset=utf-8"
        )
        response["Content-Disposition"] = (
            f'attachment; filename="{job.uid[:8]}-{attempt.number}.log"'
        )
        return response
    tail = log_tail(attempt, offset=max(0, _whole(request, "offset", default=0)))
    context = {"job": job, "attempt": attempt, "tail": tail}
    status = STOP_POLLING if tail.complete else 200
    return render(request, "jobs/job.html#log", context, status=status)


def _attempt(request: SignedIn, job: Job) -> Attempt:
    try:
        return selectors.attempt_numbered(job, _whole(request, "attempt", default=0) or None)
    except Attempt.DoesNotExist:
        raise Http404 from None


def _whole_log(attempt: Attempt) -> Iterator[bytes]:
    """Everything up to now; it does not wait for what is still to come."""
    offset = 0
    while True:
        chunk = selectors.attempt_log(attempt, offset=offset, limit=TAIL)
        yield chunk.content
        if chunk.complete or not chunk.content:
            return
        offset = chunk.next_offset


def _whole(request: SignedIn, name: str, *, default: int) -> int:
    """A whole number from the address; anything else is a wrong address."""
    try:
        return int(request.GET.get(name, default))
    except ValueError:
        raise Http404(f"{name} must be a whole number") from None


@login_required
def job_file(request: SignedIn, uid: str, path: str) -> HttpResponseBase:
    """One file that an attempt of the job made, as a download."""
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    artifact = selectors.job_outputs(job).artifact
    if artifact is None:
        raise Http404(path)
    try:
        content, _size = models.artifact_file(artifact, path)
    except (models.NoSuchFile, BlobMissing) as missing:
        raise Http404(path) from missing
    return FileResponse(content, as_attachment=True, filename=PurePosixPath(path).name)
