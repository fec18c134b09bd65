"""Files of artifacts, to save."""

from __future__ import annotations

from django.http import Http404, HttpResponseBase

from apps.models.models import Artifact
from apps.models.selectors import NoSuchFile, artifact_file
from controlplane.ports.artifacts import BlobMissing
from controlplane.web.downloads import file_download


def file_answer(artifact: Artifact, path: str, *, prefix: str) -> HttpResponseBase:
    """The file under a name that says whose it is.

    :raises Http404: if there is none of that path, or its bytes are gone.
    """
    try:
        stream, size = artifact_file(artifact, path)
    except (NoSuchFile, BlobMissing) as missing:
        raise Http404(str(missing)) from None
    return file_download(stream, size=size, filename=f"{prefix}-{path.replace('/', '-')}")
