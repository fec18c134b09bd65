"""Endpoints by which attempts upload large files straight to the artifact store."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.jobs import services
from apps.jobs.api.attempts import LARGEST_FILE, AttemptView, StoredFileSerializer
from controlplane.ports.artifacts import UploadIncomplete
from controlplane.web.problem_details import register_problem
from controlplane.web.rest import StrictSerializer


class AttemptUploadStartSerializer(StrictSerializer[Any]):
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


class AttemptUploadCompleteSerializer(StrictSerializer[Any]):
    upload = serializers.CharField(max_length=4000)


class AttemptUploadStartView(AttemptView):
    @extend_schema(
        summary="Start a direct upload",
        description="Returns presigned URLs for the parts of a file. Send each part by PUT, then "
        "complete the upload. A repeated request returns new URLs for the same upload; another "
        "file at the same path replaces it.",
        tags=["attempts"],
        request=AttemptUploadStartSerializer,
        responses=AttemptDirectUploadSerializer,
    )
    def post(self, request: Request, uid: str) -> Response:
        body = AttemptUploadStartSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        started = services.attempt_direct_upload_start(
            attempt=self.attempt, at=timezone.now(), **body.validated_data
        )
        shown = {"upload": "", "parts": ()} if started is None else started
        return Response(AttemptDirectUploadSerializer(shown).data)


class AttemptUploadCompleteView(AttemptView):
    @extend_schema(
        summary="Complete a direct upload",
        description="Verifies size and digest of the uploaded bytes. Replaces an earlier file with "
        "the same path. A file is used when the manifest lists it.",
        tags=["attempts"],
        request=AttemptUploadCompleteSerializer,
        responses=StoredFileSerializer,
    )
    def post(self, request: Request, uid: str) -> Response:
        body = AttemptUploadCompleteSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        path, blob = services.attempt_direct_upload_complete(
            attempt=self.attempt, upload=body.validated_data["upload"]
        )
        return Response({"path": path, "digest": blob.digest, "size": blob.size})


register_problem(UploadIncomplete, code="upload-incomplete", status=409)
register_problem(
    services.UploadVerificationBusy,
    code="upload-verification-busy",
    status=503,
    headers={"Retry-After": "5"},
)
