"""Endpoints to which attempts report progress, files and their manifest, and by which they upload large files.

Authenticated by the token of the attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from apps.jobs import selectors, services
from apps.jobs.models import Attempt
from controlplane.domain.common.resources import GIB
from controlplane.ports.artifacts import UploadIncomplete
from controlplane.web import rest
from controlplane.web.problem_details import register_problem
from controlplane.web.type_schemas import NumbersField, ProgressPointField


class AttemptProgressSerializer(rest.StrictSerializer[Any]):
    points = serializers.ListField(
        child=ProgressPointField(),
        max_length=2000,
        help_text="Points with a step and its metrics, or with a checkpoint.",
    )

    def validate_points(self, points: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for point in points:
            step = point.get("step")
            if isinstance(step, int) and step > rest.LARGEST_INTEGER:
                raise serializers.ValidationError(
                    f"a step is at most {rest.LARGEST_INTEGER}, got {step}"
                )
            total = point.get("total_steps", 0)
            if isinstance(total, bool) or not isinstance(total, int) or total < 0:
                message = f"total_steps must be a whole number from 0, got {total!r}"
                raise serializers.ValidationError(message)
        return points


class ManifestFileSerializer(rest.StrictSerializer[Any]):
    path = serializers.CharField(max_length=300, trim_whitespace=False)
    size = serializers.IntegerField(min_value=0, max_value=2**62)
    sha256 = serializers.RegexField(r"^[0-9a-f]{64}$")


class AttemptManifestSerializer(rest.StrictSerializer[Any]):
    kind = serializers.ChoiceField(choices=["model", "report", "outputs"])
    files = ManifestFileSerializer(many=True)
    metrics = NumbersField(required=False, default=dict)

    def validate_files(self, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return _check_listed_once(files)


def _check_listed_once(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts = Counter(file["path"] for file in files)
    twice = [path for path, count in counts.items() if count > 1]
    if twice:
        raise serializers.ValidationError(f"{twice[0]!r} is listed twice")
    return files


class AttemptCheckpointSerializer(rest.StrictSerializer[Any]):
    step = serializers.IntegerField(min_value=0, max_value=rest.LARGEST_INTEGER)
    keep = serializers.IntegerField(
        min_value=1,
        max_value=1000,
        help_text="Checkpoints that stay stored; the older ones are deleted.",
    )
    files = ManifestFileSerializer(many=True, allow_empty=False)

    def validate_files(self, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return _check_listed_once(files)


class CheckpointFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="Relative to the folder of the checkpoint.")
    digest = serializers.CharField()
    size = serializers.IntegerField(help_text="In bytes.")
    url = serializers.CharField(help_text="For GET without credentials. A secret; it expires.")


class StoredCheckpointSerializer(serializers.Serializer[Any]):
    step = serializers.IntegerField(allow_null=True, help_text="Null without a stored checkpoint.")
    files = CheckpointFileSerializer(many=True)


class StoredFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    digest = serializers.CharField()
    size = serializers.IntegerField()


DIGEST_HEADER = "X-Content-SHA256"
LARGEST_FILE = 256 * GIB
_CHUNK = 1024 * 1024
_HEX = frozenset("0123456789abcdef")


class LengthRequired(exceptions.APIException):
    """The request does not announce the size of its body."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_code = "length-required"
    default_detail = "send the size of the file as Content-Length"


class AttemptTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer`` with the token of the attempt in the URL."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Attempt]:
        """:raises AuthenticationFailed: if the token is not valid for the attempt, or the attempt has ended."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        uid = request.parser_context["kwargs"]["uid"]
        known = scheme.lower() == "bearer" and token.isascii()
        attempt = selectors.attempt_by_token(uid=uid, token=token.strip()) if known else None
        if attempt is None:
            raise exceptions.AuthenticationFailed(
                "this needs the token of the attempt, and an attempt that has not ended"
            )
        return AnonymousUser(), attempt

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class AttemptView(rest.StrictView):
    """Base view of endpoints that only the attempt itself may use."""

    attempt: Attempt

    tag = "attempts"
    authentication_classes = (AttemptTokenAuthentication,)
    permission_classes = (AllowAny,)
    content_negotiation_class = rest.IgnoreAcceptHeaderNegotiation

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # ``AttemptTokenAuthentication`` accepts nothing else.
        self.attempt = cast(Attempt, request.auth)


class AttemptProgressView(AttemptView):
    @extend_schema(
        summary="Report progress", request=AttemptProgressSerializer, responses={204: None}
    )
    def post(self, request: Request, uid: str) -> Response:
        given = self.validated_body(AttemptProgressSerializer)
        services.attempt_progress_store(
            attempt=self.attempt, points=given["points"], at=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class AttemptFileUploadView(AttemptView):
    @extend_schema(
        summary="Upload a file",
        description="Replaces an earlier file with the same path. A file is used when the manifest "
        "lists it.",
        parameters=[
            OpenApiParameter("path", str, OpenApiParameter.PATH),
            OpenApiParameter(
                DIGEST_HEADER,
                str,
                OpenApiParameter.HEADER,
                required=True,
                description="SHA-256 digest, 64 hexadecimal digits.",
            ),
        ],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses=StoredFileSerializer,
    )
    def put(self, request: Request, uid: str, path: str) -> Response:
        sha256 = request.headers.get(DIGEST_HEADER, "").lower()
        if len(sha256) != 64 or not _HEX.issuperset(sha256):
            message = f"must be the SHA-256 of the body in 64 hex digits, got {sha256!r}"
            raise exceptions.ValidationError({DIGEST_HEADER: [message]})
        size = rest.content_length(request.headers)
        if size is None:
            raise LengthRequired
        if size > LARGEST_FILE:
            raise rest.BodyTooLarge(size=size, limit=LARGEST_FILE)
        blob = services.attempt_file_receive(
            attempt=self.attempt,
            path=path,
            sha256=sha256,
            size=size,
            chunks=_body_chunks(request.stream),
        )
        return Response({"path": path, "digest": blob.digest, "size": blob.size})


def _body_chunks(stream: BinaryIO | None) -> Iterator[bytes]:
    """The body in chunks; an empty body has no stream."""
    while stream is not None and (chunk := stream.read(_CHUNK)):
        yield chunk


class AttemptManifestView(AttemptView):
    @extend_schema(
        summary="Submit the manifest",
        description="Send the manifest last. The listed files become the outputs of the job.",
        request=AttemptManifestSerializer,
        responses={204: None},
    )
    def put(self, request: Request, uid: str) -> Response:
        manifest = self.validated_body(AttemptManifestSerializer)
        services.attempt_manifest_store(attempt=self.attempt, manifest=manifest)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AttemptCheckpointView(AttemptView):
    @extend_schema(
        summary="Get the newest checkpoint",
        description="The newest stored checkpoint of the attempt and of those that it continues, with "
        "presigned URLs of its files. A repeated request returns new URLs.",
        responses=StoredCheckpointSerializer,
    )
    def get(self, request: Request, uid: str) -> Response:
        stored = services.attempt_checkpoint_download(attempt=self.attempt)
        shown = {"step": None, "files": ()} if stored is None else stored
        return Response(StoredCheckpointSerializer(shown).data)

    @extend_schema(
        summary="Store a checkpoint",
        description="Upload the files before, under the path `.checkpoints/{step}/{path}`, like files of "
        "the outputs. The next attempt continues from the newest stored checkpoint.",
        request=AttemptCheckpointSerializer,
        responses={204: None},
    )
    def put(self, request: Request, uid: str) -> Response:
        given = self.validated_body(AttemptCheckpointSerializer)
        services.attempt_checkpoint_store(attempt=self.attempt, at=timezone.now(), **given)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AttemptTokenScheme(OpenApiAuthenticationExtension):
    target_class = "apps.jobs.api.attempts.AttemptTokenAuthentication"
    name = "attemptToken"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The attempt's own token, in its environment as NINEFOLD_ATTEMPT_TOKEN.",
        }


class AttemptUploadStartSerializer(rest.StrictSerializer[Any]):
    path = serializers.CharField(max_length=300, trim_whitespace=False)
    size = serializers.IntegerField(min_value=0, max_value=LARGEST_FILE)
    sha256 = serializers.RegexField(r"^[0-9a-f]{64}$")


class UploadPartSerializer(serializers.Serializer[Any]):
    url = serializers.CharField(
        help_text="For PUT without credentials. A secret; it expires after 30 minutes."
    )
    offset = serializers.IntegerField(help_text="First byte of the part in the file.")
    size = serializers.IntegerField(help_text="In bytes.")


class AttemptDirectUploadSerializer(serializers.Serializer[Any]):
    upload = serializers.CharField(help_text="Completes the upload; empty without parts.")
    parts = UploadPartSerializer(
        many=True,
        help_text="Empty if the artifact store signs no URLs: send the file to the web.",
    )


class AttemptUploadCompleteSerializer(rest.StrictSerializer[Any]):
    upload = serializers.CharField(max_length=4000)


class AttemptUploadStartView(AttemptView):
    @extend_schema(
        summary="Start a direct upload",
        description="Returns presigned URLs for the parts of a file. Send each part by PUT, then "
        "complete the upload. A repeated request returns new URLs for the same upload; another "
        "file at the same path replaces it.",
        request=AttemptUploadStartSerializer,
        responses=AttemptDirectUploadSerializer,
    )
    def post(self, request: Request, uid: str) -> Response:
        given = self.validated_body(AttemptUploadStartSerializer)
        started = services.attempt_direct_upload_start(
            attempt=self.attempt, at=timezone.now(), **given
        )
        shown = {"upload": "", "parts": ()} if started is None else started
        return Response(AttemptDirectUploadSerializer(shown).data)


class AttemptUploadCompleteView(AttemptView):
    @extend_schema(
        summary="Complete a direct upload",
        description="Verifies size and digest of the uploaded bytes. Replaces an earlier file with "
        "the same path. A file is used when the manifest lists it.",
        request=AttemptUploadCompleteSerializer,
        responses=StoredFileSerializer,
    )
    def post(self, request: Request, uid: str) -> Response:
        given = self.validated_body(AttemptUploadCompleteSerializer)
        path, blob = services.attempt_direct_upload_complete(
            attempt=self.attempt, upload=given["upload"]
        )
        return Response({"path": path, "digest": blob.digest, "size": blob.size})


register_problem(UploadIncomplete, code="upload-incomplete", status=409)
register_problem(
    services.UploadVerificationBusy,
    code="upload-verification-busy",
    status=503,
    headers={"Retry-After": "5"},
)
