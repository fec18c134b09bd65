"""The files that a job made."""

from __future__ import annotations

from pathlib import PurePosixPath

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors
from apps.jobs.models import Job
from apps.jobs.web.jobs import job_context
from apps.models import selectors as registry
from apps.models.models import Artifact
from controlplane.ports.artifacts import BlobMissing


@login_required
def job_files(request: SignedIn, uid: str) -> HttpResponse:
    """What it made, to be downloaded one by one."""
    found = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempts = list(found.attempts.select_related("cluster"))
    context = {
        **job_context(request, found, attempts, tab="files"),
        "artifact": _artifact(found),
    }
    return render(request, "jobs/files.html", context)


@login_required
def job_file(request: SignedIn, uid: str, path: str) -> HttpResponseBase:
    """One file that an attempt of the job made, as a download."""
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    artifact = _artifact(job)
    if artifact is None:
        raise Http404(path)
    try:
        content, _size = registry.artifact_file(artifact, path)
    except (registry.NoSuchFile, BlobMissing) as missing:
        raise Http404(path) from missing
    return FileResponse(content, as_attachment=True, filename=PurePosixPath(path).name)


def _artifact(job: Job) -> Artifact | None:
    return selectors.job_outputs(job).artifact
