"""Endpoints of jobs, code archives and engines, log streams, and HTTP errors of refused specs and reports."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from datetime import timedelta

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, status
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.jobs import selectors, services
from apps.jobs.api import launch_comparison, serializers
from apps.jobs.models import Attempt, Job, JobTransition
from apps.jobs.services import ReportRefused, SpecRefused
from apps.models.api.serializers import ArtifactSerializer
from apps.models.services import artifact_storage
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.web.log_responses import LogSerializer, PlainTextRenderer, decode_chunk
from controlplane.web.problem_details import register_problem
from controlplane.web.rest import (
    BoundedMultiPartParser,
    CollectionViewSet,
    M,
    PartsViewSet,
    StrictView,
    supports_dry_run,
)


class JobViewSet(CollectionViewSet[Job]):
    tag = "jobs"
    summaries = {
        "list": "Jobs",
        "retrieve": "A job with its latest attempt, pending reasons and outputs",
    }
    token_scope = Scope.JOBS
    queries = {
        "list": serializers.JobFilters,
        "curve": serializers.TrainingCurveQuery,
        "log": serializers.JobLogQuery,
    }
    visible = staticmethod(selectors.jobs_visible)
    serializer_class = serializers.JobSerializer
    detail_serializer_class = serializers.JobDetailSerializer

    @extend_schema(
        summary="Submit a job",
        description="Validates the request and returns all errors together (422).",
        request=serializers.JobSubmitSerializer,
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        validated = self.validated_body(serializers.JobSubmitSerializer)
        accounts.require_permission(request.user, Permission.RUN, team=validated["team"])
        job = services.job_submit(actor=acting_user(request), **validated)
        return Response(self.get_serializer(job).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Check a job without submitting it",
        request=serializers.JobSubmitSerializer,
        responses=serializers.JobCheckSerializer,
    )
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        validated = self.validated_body(serializers.JobSubmitSerializer)
        resolved = services.job_request_resolve(validated["request"])
        return Response(
            {
                "accepted": not resolved.findings,
                "findings": [asdict(finding) for finding in resolved.findings],
                "spec": resolved.spec,
                "chips": [chip.name for chip in resolved.chips],
            }
        )

    @extend_schema(
        summary="Compare the launches of a spec on two chips",
        description="No job is submitted. Secrets are never shown.",
        request=launch_comparison.LaunchComparisonRequestSerializer,
        responses=launch_comparison.LaunchComparisonSerializer,
    )
    @action(detail=False, methods=["post"])
    def render(self, request: Request) -> Response:
        validated = self.validated_body(launch_comparison.LaunchComparisonRequestSerializer)
        found = services.compare_launches_of_request(validated["request"], chips=validated["chips"])
        return Response(launch_comparison.launch_comparison_json(found))

    @post_action(
        "Cancel a job", "Requests cancellation; the state changes after all processes have stopped."
    )
    def cancel(self, request: Request, uid: str) -> Response:
        job = self.get_object()
        accounts.require_permission(request.user, Permission.RUN, team=job.team)
        services.job_cancel(job=job, actor=acting_user(request), at=timezone.now())
        return Response(self.get_serializer(self.get_object()).data)

    @post_action("Retry a failed or cancelled job from its latest checkpoint")
    def retry(self, request: Request, uid: str) -> Response:
        job = self.get_object()
        accounts.require_permission(request.user, Permission.RUN, team=job.team)
        services.job_retry(job=job, actor=acting_user(request), at=timezone.now())
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Reported metrics by step", responses=serializers.TrainingCurveSerializer
    )
    @action(detail=True)
    def curve(self, request: Request, uid: str) -> Response:
        job = self.get_object()
        curve = selectors.job_curve_points(job, after=self.query["after"])
        return Response({"state": job.state, "points": curve})

    @extend_schema(
        summary="Log of a job",
        description="A part of the log as JSON, or as plain text if Accept prefers it. With follow=true plain "
        "text is streamed until the attempt has ended; an interrupted client reconnects with the "
        "number of received bytes as offset.",
        responses={
            (200, "application/json"): LogSerializer,
            (200, "text/plain"): OpenApiTypes.STR,
        },
    )
    @action(detail=True, renderer_classes=[JSONRenderer, PlainTextRenderer])
    def log(self, request: Request, uid: str) -> HttpResponseBase:
        attempt = self._requested_attempt()
        offset = self.query["offset"]
        if self.query["follow"]:
            return StreamingHttpResponse(
                LogFollower(attempt, offset=offset), content_type=PlainTextRenderer.content_type
            )
        chunk = selectors.attempt_log(attempt, offset=offset, limit=self.query["limit"])
        text, next_offset = decode_chunk(chunk, tail=offset < 0)
        if PlainTextRenderer.is_accepted(request):
            return Response(text, headers={"X-Next-Offset": str(next_offset)})
        complete = chunk.complete and attempt.ended_at is not None
        return Response({"text": text, "next_offset": next_offset, "complete": complete})

    def _requested_attempt(self) -> Attempt:
        number = self.query.get("attempt")
        try:
            return selectors.attempt_by_number(self.get_object(), number)
        except Attempt.DoesNotExist:
            raise Http404 from None


class JobPartsViewSet(PartsViewSet[M]):
    tag = "jobs"
    token_scope = Scope.JOBS

    def visible_wholes(self) -> QuerySet[Job]:
        return selectors.jobs_visible(self.request.user)


class JobTransitionViewSet(JobPartsViewSet[JobTransition]):
    summaries = {"list": "State transitions of a job"}
    watch_key = "pk"
    append_only = True
    serializer_class = serializers.JobTransitionSerializer

    def get_queryset(self) -> QuerySet[JobTransition]:
        jobs = self.visible_wholes().filter(uid=self.whole_uid)
        return JobTransition.objects.filter(entity__in=jobs)


class JobAttemptViewSet(JobPartsViewSet[Attempt]):
    summaries = {"list": "Attempts of a job"}
    serializer_class = serializers.AttemptSerializer

    def get_queryset(self) -> QuerySet[Attempt]:
        return selectors.job_attempts(self.visible_wholes().filter(uid=self.whole_uid))


class CodeArchiveView(StrictView):
    """Archives for script jobs."""

    tag = "jobs"
    token_scope = Scope.JOBS
    parser_classes = (BoundedMultiPartParser,)

    @extend_schema(
        summary="Upload code for script jobs",
        request=serializers.CodeArchiveSerializer,
        responses={201: ArtifactSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = self.validated_body(serializers.CodeArchiveSerializer)
        team, file = given["team"], given["file"]
        accounts.require_permission(request.user, Permission.RUN, team=team)
        artifact = artifact_storage.code_upload(
            actor=acting_user(request), team=team, stream=file.file, filename=file.name
        )
        return Response(ArtifactSerializer(artifact).data, status=status.HTTP_201_CREATED)


class EnginesView(StrictView):
    """The engines that the installed plug-ins provide."""

    tag = "jobs"
    token_scope = Scope.READ

    @extend_schema(
        summary="Engines and the fields of their specs",
        responses=serializers.EngineSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        return Response([asdict(engine) for engine in selectors.installed_engine_descriptions()])


register_problem(SpecRefused, code="spec-refused")
register_problem(ReportRefused, code="report-refused")


#: Concurrent followers in one process. Each occupies a thread of the web server, which has twice as many.
MAX_FOLLOWERS = 8
#: Maximum duration of a stream; the client then reconnects with its number of bytes as offset.
FOLLOW_WITHIN = timedelta(minutes=15)
_POLL_SECONDS = 0.5
_CHUNK = 256 * 1024

_slots = threading.BoundedSemaphore(MAX_FOLLOWERS)


class TooManyFollowers(exceptions.APIException):
    """The maximum number of followers is reached."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "too-many-followers"
    default_detail = (
        f"{MAX_FOLLOWERS} logs are being followed already; try again later, or poll with offset"
    )
    #: Seconds; becomes Retry-After.
    wait = 5


class LogFollower:
    """The bytes of an attempt's log while it grows. Occupies one of ``MAX_FOLLOWERS`` slots until it is closed.

    :raises TooManyFollowers: if no slot is free.
    """

    def __init__(
        self, attempt: Attempt, *, offset: int, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if not _slots.acquire(blocking=False):
            raise TooManyFollowers
        self._active = True
        self._chunks = self._follow_log(attempt, offset)
        self._sleep = sleep

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """Release the slot. The server calls it when the client disconnects."""
        self._chunks.close()
        if self._active:
            self._active = False
            _slots.release()

    def _follow_log(self, attempt: Attempt, offset: int) -> Generator[bytes]:
        until = time.monotonic() + FOLLOW_WITHIN.total_seconds()
        while True:
            # Before the log is read, so that the log is complete if the attempt has ended.
            attempt = selectors.reload_attempt(attempt)
            chunk = selectors.attempt_log(attempt, offset=offset, limit=_CHUNK)
            if chunk.content:
                offset = chunk.next_offset
                yield chunk.content
            elif attempt.ended_at is not None or time.monotonic() > until:
                return
            else:
                # Sends nothing, but lets the server notice a disconnected client.
                yield b""
                self._sleep(_POLL_SECONDS)
