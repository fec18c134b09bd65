"""Metrics that agents push, metric sources, and the tokens of agents.

``docs/telemetry.md`` describes the wire format of a push with every response.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import IO, Any

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.authentication import BaseAuthentication
from rest_framework.parsers import BaseParser
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.fleet import selectors as fleet
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.api.faults import node_uid_field
from apps.monitoring.services import metric_ingestion
from apps.telemetry import selectors
from apps.telemetry.models import AgentReport, NodeToken, Source
from apps.telemetry.selectors import metric_source_option_models
from apps.telemetry.services import metric_sources
from apps.telemetry.services.metric_sources import LONGEST, SHORTEST, MetricSourceTestResult
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.common.permissions import Scope
from controlplane.domain.common.resources import MIB
from controlplane.persistence.audit_context import current_audit_context
from controlplane.web import rest
from controlplane.web.rate_limits import count_events_in_window
from controlplane.web.type_schemas import DeclaredByKindField, DeclaredField

_OPTIONS = (
    "Of its kind: ``vendor`` with ``targets`` for exporters; ``url``, ``vendor`` and at will ``selector``, "
    "``node_label`` and ``window`` for a Prometheus."
)
_CREDENTIAL = "A bearer token that it wants. Kept encrypted and never shown again; empty: none."

_ENABLED = (
    "False pauses it: it is not read until it is true again. A source of agents is not read and cannot be paused: "
    "false is refused with 422; revoke the agents' tokens instead."
)


class MetricSourceSerializer(serializers.ModelSerializer[Source]):
    cluster = rest.ObjectReference()
    options = DeclaredByKindField(
        declared=metric_source_option_models, help_text="Options without secrets."
    )
    has_token = serializers.SerializerMethodField()
    refusals = rest.TextListField(
        help_text="Samples of the last scrape that were rejected, with reasons."
    )
    unreachable = serializers.DictField(
        child=serializers.CharField(), help_text="Unreachable targets with reasons."
    )

    class Meta:
        model = Source
        fields = (
            "uid",
            "name",
            "cluster",
            "kind",
            "options",
            "has_token",
            "every",
            "enabled",
            "tried_at",
            "read_at",
            "error",
            "stalled",
            "readings",
            "refused",
            "refusals",
            "unreachable",
            "created_by_name",
            "created_at",
        )
        extra_kwargs = {
            "every": {"help_text": "Seconds between two readings."},
            "error": {"help_text": "Why the last reading failed; empty: it did not."},
            "stalled": {"help_text": "Why silence of its cards is not acted upon; empty: it is."},
            "readings": {"help_text": "Cards that the last good reading told of."},
        }

    def get_has_token(self, source: Source) -> bool:
        return source.credential is not None


class MetricSourceChangeSerializer(rest.StrictSerializer[Any]):
    options = DeclaredByKindField(
        declared=metric_source_option_models,
        required=False,
        help_text="All options; replaces the current options.",
    )
    every = serializers.IntegerField(required=False, min_value=SHORTEST, max_value=LONGEST)
    token = serializers.CharField(
        required=False, allow_blank=True, write_only=True, max_length=4000, help_text=_CREDENTIAL
    )
    enabled = serializers.BooleanField(required=False, help_text=_ENABLED)


class MetricSourceCreateSerializer(MetricSourceChangeSerializer):
    name = serializers.CharField(max_length=60)
    cluster = rest.VisibleUidField(visible=lambda _user: fleet.clusters_with_counts())
    kind = serializers.CharField(max_length=20, help_text="``exporter`` or ``prometheus``.")
    options = DeclaredByKindField(declared=metric_source_option_models, help_text=_OPTIONS)


class MetricSourceTrialSerializer(serializers.Serializer[MetricSourceTestResult]):
    cards = serializers.IntegerField(help_text="Number of cards with metrics.")
    nodes = rest.TextListField()
    strangers = rest.TextListField(help_text="Names of unknown nodes.")
    refusals = rest.TextListField()
    unreachable = serializers.DictField(child=serializers.CharField())


class NodeTokenSerializer(serializers.ModelSerializer[NodeToken]):
    node = rest.ObjectReference()
    agent = DeclaredField(
        declared=lambda: AgentReport,
        help_text="Version and state that the agent reported; empty: none yet.",
    )

    class Meta:
        model = NodeToken
        fields = (
            "uid",
            "node",
            "created_by_name",
            "created_at",
            "used_at",
            "revoked_at",
            "sequence",
            "agent",
        )


class NodeTokenListFilters(rest.ListFilters):
    node = node_uid_field(required=False, help_text="Uid of the object.")
    lookups = {"node": "node"}


class NodeTokenCreateSerializer(rest.StrictSerializer[Any]):
    node = node_uid_field()


class NewNodeTokenSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="Shown only in this response.")


LARGEST_BODY, MAX_TEXT_SIZE = 4 * MIB, 16 * MIB
#: Batches of one token, and wrong tokens of one address, within a minute; each process counts for itself.
MOST_A_MINUTE, MOST_WRONG = 120, 30
_WINDOW = 60
_SEQUENCE = re.compile("[0-9]{1,19}")
_LARGEST_SEQUENCE = 2**63 - 1
_VENDOR = re.compile("[a-z0-9_-]{1,40}")
_LONGEST_AGENT = 200


class NodeTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer nft-…``; the token becomes ``request.auth``."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, NodeToken]:
        """:raises AuthenticationFailed: if it is not a node's, or was revoked.
        :raises Throttled: if too many of them came from that address.
        """
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        known = scheme.lower() == "bearer" and text.isascii()
        token = selectors.find_valid_node_token(text.strip()) if known else None
        if token is None:
            if (
                count_events_in_window(
                    f"failed-node-tokens:{current_audit_context().address}", seconds=_WINDOW
                )
                > MOST_WRONG
            ):
                raise exceptions.Throttled(wait=_WINDOW)
            raise exceptions.AuthenticationFailed(
                "this needs the token of a node that was not revoked; an operator can make another"
            )
        return AnonymousUser(), token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ExpositionParser(BaseParser):
    """Prometheus' text format within a bound, unpacked where it is packed."""

    media_type = "text/plain"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """Return the text as ``text``.

        :raises BodyTooLarge: if it exceeds the limit, compressed or decompressed.
        :raises ParseError: if it does not match its headers.
        :raises UnsupportedMediaType: for another compression.
        """
        rest.require_body_within(parser_context, limit=LARGEST_BODY)
        request = (parser_context or {})["request"]
        packing = request.headers.get("Content-Encoding", "identity").strip().lower()
        # Nothing is read that was not announced: see the bound above.
        body: bytes = stream.read(LARGEST_BODY + 1)
        if packing == "gzip":
            body = _decompress_body(body)
        elif packing not in ("", "identity"):
            raise exceptions.UnsupportedMediaType(packing)
        try:
            return {"text": body.decode("utf-8")}
        except UnicodeDecodeError:
            raise exceptions.ParseError("the text is not UTF-8") from None


def _decompress_body(body: bytes) -> bytes:
    """No more than the bound is ever unpacked, whatever a small body would grow to.

    :raises BodyTooLarge: if it is more.
    :raises ParseError: if it is no gzip.
    """
    unpacking = zlib.decompressobj(wbits=31)
    try:
        text = unpacking.decompress(body, MAX_TEXT_SIZE + 1)
    except zlib.error as error:
        raise exceptions.ParseError(f"the body is no gzip: {error}") from None
    if len(text) > MAX_TEXT_SIZE:
        raise rest.BodyTooLarge(size=len(text), limit=MAX_TEXT_SIZE)
    if not unpacking.eof:
        raise exceptions.ParseError("the body is no whole gzip")
    return text


@extend_schema(exclude=True)
class MetricsPushView(APIView):
    """Endpoint to which agents push the metrics of their node."""

    authentication_classes = (NodeTokenAuthentication,)
    permission_classes = (AllowAny,)
    parser_classes = (ExpositionParser,)
    content_negotiation_class = rest.IgnoreAcceptHeaderNegotiation

    def post(self, request: Request) -> Response:
        token = request.auth
        if not isinstance(token, NodeToken):
            raise exceptions.NotAuthenticated
        rest.QuerySerializer.read(request)
        if count_events_in_window(f"pushes:{token.pk}", seconds=_WINDOW) > MOST_A_MINUTE:
            raise exceptions.Throttled(wait=_WINDOW)
        headers, given = request.headers, request.data
        push = metric_ingestion.MetricPush(
            vendor=_parse_vendor_header(headers.get("X-Ninefold-Vendor", "")),
            sequence=_parse_sequence_header(headers.get("X-Ninefold-Sequence", "")),
            measured_at=_parse_timestamp_header(headers.get("X-Ninefold-At", "")),
            # Without a body nothing was parsed.
            text=given.get("text", "") if isinstance(given, Mapping) else "",
            agent=_parse_agent_version_header(headers.get("X-Ninefold-Agent", "")),
        )
        pushed = metric_ingestion.metric_push_record(token=token, push=push, at=timezone.now())
        return Response(
            {
                "sequence": pushed.sequence,
                "taken": pushed.taken,
                "readings": pushed.recorded.cards,
                "refused": pushed.recorded.refused,
                "refusals": list(pushed.recorded.refusals),
            }
        )


def _header_error(header: str, message: str) -> exceptions.ValidationError:
    return exceptions.ValidationError({header: [message]})


def _parse_vendor_header(text: str) -> str:
    if not _VENDOR.fullmatch(text):
        raise _header_error(
            "X-Ninefold-Vendor", f"must be a chip plug-in's vendor, got {text[:40]!r}"
        )
    return text


def _parse_sequence_header(text: str) -> int:
    if not _SEQUENCE.fullmatch(text) or not 1 <= int(text) <= _LARGEST_SEQUENCE:
        message = f"must be a whole number from 1 to {_LARGEST_SEQUENCE}, got {text[:40]!r}"
        raise _header_error("X-Ninefold-Sequence", message)
    return int(text)


def _parse_timestamp_header(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found
    except ValueError:
        pass
    message = f"must be a time with its zone such as 2026-03-01T12:00:00Z, got {text[:40]!r}"
    raise _header_error("X-Ninefold-At", message)


def _parse_agent_version_header(text: str) -> str:
    if len(text) > _LONGEST_AGENT or not text.isprintable():
        raise _header_error(
            "X-Ninefold-Agent", f"must be at most {_LONGEST_AGENT} printable characters"
        )
    return text


# For operators of the fleet: other users get empty lists and no details.
class EmptyForNonOperatorsViewSet(rest.CollectionViewSet[rest.M]):
    token_scope = Scope.ADMIN

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        if self.action != "list":
            require_fleet_operator(request.user)


class MetricSourceViewSet(EmptyForNonOperatorsViewSet[Source]):
    tag = "fleet"
    summaries = {"list": "Metric sources", "retrieve": "Get a metric source"}
    serializer_class = MetricSourceSerializer
    visible = staticmethod(selectors.metric_sources_visible)

    @extend_schema(
        summary="Create a metric source",
        description="Metrics of the cluster's cards are scraped from the source. The source is not "
        "contacted by this request; use the test endpoint.",
        request=MetricSourceCreateSerializer,
    )
    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(MetricSourceCreateSerializer)
        source = metric_sources.metric_source_create(actor=acting_user(request), **given)
        return Response(self.get_serializer(source).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change, pause or resume a metric source", request=MetricSourceChangeSerializer
    )
    @rest.supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        source, actor = self.get_object(), acting_user(request)
        given = self.validated_body(MetricSourceChangeSerializer)
        metric_sources.metric_source_change(source=source, actor=actor, **given)
        return Response(self.get_serializer(source).data)

    @extend_schema(
        summary="Delete a metric source",
        description="Stored metrics are kept. Faults that only this source reported resolve.",
    )
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        source, actor = self.get_object(), acting_user(request)
        metric_ingestion.metric_source_delete(source=source, actor=actor, at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @post_action(
        "Test a metric source",
        "Scrapes the source once without storing the result.",
        responses=MetricSourceTrialSerializer,
        url_path="try",
    )
    def attempt(self, request: Request, uid: str) -> Response:
        trial = metric_sources.metric_source_test(
            source=self.get_object(), actor=acting_user(request)
        )
        return Response(MetricSourceTrialSerializer(trial).data)


class NodeTokenViewSet(EmptyForNonOperatorsViewSet[NodeToken]):
    tag = "fleet"
    summaries = {"list": "Node tokens", "retrieve": "Get a node token"}
    serializer_class = NodeTokenSerializer
    queries = {"list": NodeTokenListFilters}
    visible = staticmethod(selectors.node_tokens_visible)

    @extend_schema(
        summary="Create a node token",
        description="The agent authenticates with the token. The token is shown only in this "
        "response.",
        request=NodeTokenCreateSerializer,
        responses={201: NewNodeTokenSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(NodeTokenCreateSerializer)
        text = node_token_issue(node=given["node"], actor=acting_user(request))
        return Response({"token": text}, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Revoke a node token",
        description="Revoking the last valid token of a node resolves the faults that its agent "
        "reported.",
    )
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        token, actor = self.get_object(), acting_user(request)
        metric_ingestion.agent_token_revoke(token=token, actor=actor, at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
