from __future__ import annotations

from dataclasses import asdict

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.jobs import selectors, services
from apps.jobs.api import engine_serializers, renderings, serializers, submission_serializers
from apps.jobs.api.logs import Follower
from apps.jobs.models import Attempt, Job
from apps.models.api.serializers import ArtifactSerializer
from apps.models.services import artifacts
from controlplane.domain.permissions import Permission, Scope
from controlplane.web.parsers import BoundedMultiPartParser
from controlplane.web.rest import Query, ResourceViewSet
from controlplane.web.texts import LogSerializer, PlainTextRenderer, decoded


@extend_schema_view(
    list=extend_schema(summary="Jobs", tags=["jobs"], parameters=[serializers.JobFilters]),
    retrieve=extend_schema(
        summary="A job with its newest attempt, why it waits, and what it made",
        tags=["jobs"],
        responses=serializers.JobDetailSerializer,
    ),
)
class JobViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Job]):
    token_scope = Scope.JOBS
    queries = {
        "list": serializers.JobFilters,
        "curve": serializers.CurveQuery,
        "log": serializers.JobLogQuery,
    }

    def get_queryset(self) -> QuerySet[Job]:
        return selectors.jobs_visible(self.request.user)

    def get_serializer_class(self) -> type[serializers.JobSerializer]:
        if self.action == "list":
            return serializers.JobSerializer
        return serializers.JobDetailSerializer

    @extend_schema(
        summary="Submit a job",
        description="It is checked at once; everything that is wrong is said at once (422).",
        tags=["jobs"],
        request=submission_serializers.JobSubmitSerializer,
        responses={201: serializers.JobDetailSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.checked(submission_serializers.JobSubmitSerializer)
        accounts.require(request.user, Permission.RUN, team=given["team"])
        job = services.job_submit(actor=acting_user(request), **given)
        return Response(self.get_serializer(job).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Check a job without submitting it",
        tags=["jobs"],
        request=submission_serializers.JobSubmitSerializer,
        responses=submission_serializers.JobCheckSerializer,
    )
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        given = self.checked(submission_serializers.JobSubmitSerializer)
        settled = services.job_settle(given["request"])
        return Response(
            {
                "accepted": not settled.findings,
                "findings": [asdict(finding) for finding in settled.findings],
                "spec": settled.spec,
                "chips": [chip.name for chip in settled.chips],
            }
        )

    @extend_schema(
        summary="One spec as two chips would run it",
        description="Nothing is submitted. What differs is what the chips give; secrets are never shown.",
        tags=["jobs"],
        request=renderings.RenderSubmitSerializer,
        responses=renderings.SideBySideSerializer,
    )
    @action(detail=False, methods=["post"])
    def render(self, request: Request) -> Response:
        given = self.checked(renderings.RenderSubmitSerializer)
        found = services.request_rendered(given["request"], chips=given["chips"])
        return Response(renderings.side_by_side_json(found))

    @extend_schema(
        summary="Cancel a job",
        description="Asks for its end; the state changes once nothing of it runs any more.",
        tags=["jobs"],
        request=None,
        responses=serializers.JobDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, uid: str) -> Response:
        job = self.get_object()
        accounts.require(request.user, Permission.RUN, team=job.team)
        services.job_cancel(job=job, actor=acting_user(request), at=timezone.now())
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Run a failed or cancelled job again, from its newest checkpoint",
        tags=["jobs"],
        request=None,
        responses=serializers.JobDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, uid: str) -> Response:
        job = self.get_object()
        accounts.require(request.user, Permission.RUN, team=job.team)
        services.job_retry(job=job, actor=acting_user(request), at=timezone.now())
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="What it reported, by step",
        tags=["jobs"],
        parameters=[serializers.CurveQuery],
        responses=serializers.CurveSerializer,
    )
    @action(detail=True)
    def curve(self, request: Request, uid: str) -> Response:
        job = self.get_object()
        curve = selectors.curve_of(job, after=self.query["after"])
        return Response({"state": job.state, "points": curve})

    @extend_schema(
        summary="Its log",
        description=(
            "A piece as JSON, or as plain text if that is what Accept prefers. With follow=true plain "
            "text is streamed until the attempt has ended; a follower that is cut off comes back with "
            "the number of bytes that it has as offset."
        ),
        tags=["jobs"],
        parameters=[serializers.JobLogQuery],
        responses={
            (200, "application/json"): LogSerializer,
            (200, "text/plain"): OpenApiTypes.STR,
        },
    )
    @action(detail=True, renderer_classes=[JSONRenderer, PlainTextRenderer])
    def log(self, request: Request, uid: str) -> HttpResponseBase:
        attempt = self._attempt()
        offset = self.query["offset"]
        if self.query["follow"]:
            return StreamingHttpResponse(
                Follower(attempt, offset=offset), content_type=PlainTextRenderer.content_type
            )
        chunk = selectors.attempt_log(attempt, offset=offset, limit=self.query["limit"])
        text, next_offset = decoded(chunk, tail=offset < 0)
        if PlainTextRenderer.agreed(request):
            return Response(text, headers={"X-Next-Offset": str(next_offset)})
        complete = chunk.complete and attempt.ended_at is not None
        return Response({"text": text, "next_offset": next_offset, "complete": complete})

    def _attempt(self) -> Attempt:
        number = self.query.get("attempt")
        try:
            return selectors.attempt_numbered(self.get_object(), number)
        except Attempt.DoesNotExist:
            raise Http404 from None

    @extend_schema(
        summary="Every move of its state",
        tags=["jobs"],
        responses=serializers.JobTransitionSerializer(many=True),
    )
    @action(detail=True, pagination_class=None)
    def events(self, request: Request, uid: str) -> Response:
        moves = self.get_object().transitions.all()
        return Response(serializers.JobTransitionSerializer(moves, many=True).data)

    @extend_schema(
        summary="Its attempts",
        tags=["jobs"],
        responses=serializers.AttemptSerializer(many=True),
    )
    @action(detail=True, pagination_class=None)
    def attempts(self, request: Request, uid: str) -> Response:
        attempts = selectors.attempts_of(self.get_object())
        return Response(serializers.AttemptSerializer(attempts, many=True).data)


class CodeView(APIView):
    """Archives for script jobs."""

    token_scope = Scope.JOBS
    parser_classes = (BoundedMultiPartParser,)

    @extend_schema(
        summary="Upload code for script jobs",
        tags=["jobs"],
        request=submission_serializers.CodeSerializer,
        responses={201: ArtifactSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        Query.read(request)
        body = submission_serializers.CodeSerializer(
            data=request.data, context={"request": request}
        )
        body.is_valid(raise_exception=True)
        team, file = body.validated_data["team"], body.validated_data["file"]
        accounts.require(request.user, Permission.RUN, team=team)
        artifact = artifacts.code_upload(
            actor=acting_user(request), team=team, stream=file.file, filename=file.name
        )
        return Response(ArtifactSerializer(artifact).data, status=status.HTTP_201_CREATED)


class EnginesView(APIView):
    """The engines that the installed plug-ins provide."""

    token_scope = Scope.READ

    @extend_schema(
        summary="Engines and the fields of their specs",
        tags=["jobs"],
        responses=engine_serializers.EngineSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        Query.read(request)
        return Response([asdict(engine) for engine in selectors.engines()])
