from __future__ import annotations

from django.urls import include, path, re_path
from rest_framework.routers import SimpleRouter

from apps.jobs.api import attempts, views
from controlplane.web.rest import UID

#: Imported for what they register.
REGISTERS = (attempts, views)

router = SimpleRouter(trailing_slash=False)
router.register("jobs", views.JobViewSet, basename="job")

_JOB = f"jobs/(?P<uid>{UID})"
_ATTEMPT = f"attempts/(?P<uid>{UID})"

urlpatterns = [
    path("code", views.CodeArchiveView.as_view(), name="code"),
    path("engines", views.EnginesView.as_view(), name="engines"),
    re_path(
        f"^{_ATTEMPT}/progress$", attempts.AttemptProgressView.as_view(), name="attempt-progress"
    ),
    re_path(
        f"^{_ATTEMPT}/files/(?P<path>.+)$",
        attempts.AttemptFileUploadView.as_view(),
        name="attempt-file",
    ),
    re_path(
        f"^{_ATTEMPT}/uploads$",
        attempts.AttemptUploadStartView.as_view(),
        name="attempt-upload-start",
    ),
    re_path(
        f"^{_ATTEMPT}/uploads/complete$",
        attempts.AttemptUploadCompleteView.as_view(),
        name="attempt-upload-complete",
    ),
    re_path(
        f"^{_ATTEMPT}/checkpoint$",
        attempts.AttemptCheckpointView.as_view(),
        name="attempt-checkpoint",
    ),
    re_path(
        f"^{_ATTEMPT}/manifest$", attempts.AttemptManifestView.as_view(), name="attempt-manifest"
    ),
    re_path(
        f"^{_JOB}/attempts$", views.JobAttemptViewSet.as_view({"get": "list"}), name="job-attempts"
    ),
    re_path(
        f"^{_JOB}/events$", views.JobTransitionViewSet.as_view({"get": "list"}), name="job-events"
    ),
    path("", include(router.urls)),
]
