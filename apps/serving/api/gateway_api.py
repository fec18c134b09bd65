"""Internal API of gateways: snapshots and usage. Authenticated by the gateway token only."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, status
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.serving import selectors
from apps.serving.api.serializers import GatewayPollQuery, UsageBatchSerializer
from apps.serving.models import GatewaySnapshot
from apps.serving.services import gateways
from controlplane.web.rest import BoundedJSONParser, IgnoreAcceptHeaderNegotiation

SIGNATURE = "X-Ninefold-Signature"
DRAINING_HEADER = "X-Ninefold-Draining"
#: How often a long poll queries the database. No transaction is open in between.
POLL_SECONDS = 0.25
_MAX_NAME_LENGTH = 80


class GatewayTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer`` with the token that gateways share with the product."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, str]:
        """:raises AuthenticationFailed: if it is another token."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        right = settings.NINEFOLD_GATEWAY_TOKEN.encode()
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), right):
            raise exceptions.AuthenticationFailed("this is for gateways, by their token")
        return AnonymousUser(), calling_gateway_name(request)

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def calling_gateway_name(request: Request) -> str:
    """The name of the calling gateway.

    :raises ValidationError: if the header is missing or unusable.
    """
    name = request.headers.get("X-Ninefold-Gateway", "")
    if not 1 <= len(name) <= _MAX_NAME_LENGTH or not name.isprintable():
        message = f"must name the gateway in 1 to {_MAX_NAME_LENGTH} characters, got {name!r}"
        raise exceptions.ValidationError({"X-Ninefold-Gateway": [message]})
    return name


@extend_schema(exclude=True)
class GatewayView(APIView):
    """``request.auth`` is the gateway's name."""

    authentication_classes = (GatewayTokenAuthentication,)
    permission_classes = (AllowAny,)
    parser_classes = (BoundedJSONParser,)
    content_negotiation_class = IgnoreAcceptHeaderNegotiation


class GatewaySnapshotView(GatewayView):
    """A long poll: answers as soon as there is a newer version, with 304 if none came in time."""

    def get(self, request: Request) -> HttpResponse:
        query = GatewayPollQuery.read(request)
        after: int = query["after"]
        gateways.gateway_mark_seen(
            name=str(request.auth),
            version=after,
            at=timezone.now(),
            draining_requests=_draining_requests(request),
        )
        snapshot = _wait_for_snapshot(after=after, seconds=query["wait"])
        if snapshot is None:
            return HttpResponse(status=status.HTTP_304_NOT_MODIFIED)
        body = gateways.gateway_snapshot_body(snapshot)
        response = HttpResponse(body, content_type="application/json")
        response[SIGNATURE] = gateway_body_signature(body)
        return response


def _draining_requests(request: Request) -> dict[str, int]:
    """The gateway's open requests by uid of replicas that its snapshot no longer names; older ones send none.

    :raises ValidationError: if the header is not a JSON object of numbers.
    """
    text = request.headers.get(DRAINING_HEADER, "{}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(type(count) is int for count in found.values()):
        message = f"must be a JSON object of numbers by uid, got {text[:80]!r}"
        raise exceptions.ValidationError({DRAINING_HEADER: [message]})
    return found


def _wait_for_snapshot(*, after: int, seconds: int) -> GatewaySnapshot | None:
    """The newest snapshot, as soon as its version is higher than ``after``."""
    until = time.monotonic() + seconds
    while True:
        snapshot = selectors.gateway_snapshot_newer_than(after)
        if snapshot is None and after == 0:
            # A gateway without a snapshot does not wait for the next periodic publication.
            snapshot = gateways.gateway_snapshot_publish(at=timezone.now())
        if snapshot is not None or time.monotonic() >= until:
            return snapshot
        time.sleep(POLL_SECONDS)


def gateway_body_signature(body: bytes) -> str:
    """Hexadecimal HMAC-SHA256 under the gateway token."""
    token = settings.NINEFOLD_GATEWAY_TOKEN.encode()
    return hmac.new(token, body, hashlib.sha256).hexdigest()


class GatewayUsageView(GatewayView):
    """Stores a batch of usage once, however often it is posted."""

    def post(self, request: Request) -> Response:
        body = UsageBatchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        batch: dict[str, Any] = body.validated_data
        if batch["gateway"] != request.auth:
            message = f"must be the caller's own name, {request.auth}, got {batch['gateway']!r}"
            raise exceptions.ValidationError({"gateway": [message]})
        return Response({"counted": gateways.usage_batch_record(**batch)})
