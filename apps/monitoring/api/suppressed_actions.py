"""REST of actions suppressed by the guard, and the two decisions about all of a pool together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.monitoring.api.faults import UidField
from apps.monitoring.selectors.suppressed_actions import SuppressedPool, suppressed_pools
from apps.monitoring.services import suppressed_actions
from apps.monitoring.services.suppressed_actions import (
    SuppressedActionsRequest,
    SuppressedActionsResult,
)
from controlplane.domain.common.permissions import Scope
from controlplane.web.rest import (
    LARGEST_INTEGER,
    StrictSerializer,
    StrictView,
)


class SuppressedIsolationCountSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    isolations = serializers.IntegerField()


class SuppressedPoolSerializer(serializers.Serializer[SuppressedPool]):
    """Suppressed isolations of one chip in one cluster, and the consequences of isolating all of them."""

    cluster = serializers.CharField(help_text="Name of the object.")
    cluster_uid = serializers.CharField()
    chip = serializers.CharField(help_text="Chip; empty: nodes without cards.")
    isolations = serializers.IntegerField(
        help_text="Suppressed isolations of cards and whole nodes."
    )
    nodes = serializers.IntegerField()
    since = serializers.DateTimeField(help_text="Time of the oldest suppressed isolation.")
    until = serializers.CharField(
        help_text="Pass this time in a request, so that later isolations are not included."
    )
    codes = SuppressedIsolationCountSerializer(many=True, help_text="Isolations by fault code.")
    parts = SuppressedIsolationCountSerializer(
        many=True, help_text="Isolations by rack or another topology label."
    )
    cards = serializers.IntegerField(help_text="Cards that would be isolated.")
    works = serializers.IntegerField(help_text="Jobs and deployments that would be evicted.")
    size = serializers.IntegerField(help_text="Cards in the pool.")
    out = serializers.IntegerField(help_text="Cards that are unusable now.")
    usable = serializers.IntegerField(help_text="Cards that are usable now.")
    left = serializers.IntegerField(help_text="Cards that would remain usable.")


class SuppressedActionsSerializer(serializers.Serializer[Any]):
    pools = SuppressedPoolSerializer(many=True)


class SuppressedActionsRequestSerializer(StrictSerializer[Any]):
    cluster = UidField(help_text="Uid of the cluster of the pool.")
    chip = serializers.CharField(max_length=60, allow_blank=True)
    until = UidField(
        required=False, help_text="Time from the pool; absent: all suppressed isolations."
    )
    shown = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=LARGEST_INTEGER,
        help_text="Number of isolations that were displayed; the response returns how many were "
        "not included.",
    )
    reason = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=2000,
        help_text="Reason; required unless dry_run.",
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="Return the suppressed isolations without changes."
    )


class SuppressedActionsResultSerializer(serializers.Serializer[SuppressedActionsResult]):
    pool = SuppressedPoolSerializer(
        allow_null=True,
        help_text="State of the pool before the request; null if no isolation was suppressed.",
    )
    done = serializers.IntegerField(help_text="Isolations that were processed; 0 in a dry run.")
    left_out = serializers.IntegerField(
        help_text="Displayed isolations that were not processed: the fault was resolved or "
        "another user decided first."
    )


class SuppressedActionsView(StrictView):
    """Isolations that the guard suppresses."""

    tag = "health"
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="Isolations suppressed by the guard", responses=SuppressedActionsSerializer
    )
    def get(self, request: Request) -> Response:
        pools = suppressed_pools(at=timezone.now())
        return Response(SuppressedActionsSerializer({"pools": pools}).data)


class _SuppressedActionsDecisionView(StrictView):
    """A decision about all suppressed isolations of a pool; subclasses name the service."""

    tag = "health"
    token_scope = Scope.ADMIN
    does: ClassVar[Callable[..., SuppressedActionsResult]]

    @extend_schema(
        request=SuppressedActionsRequestSerializer, responses=SuppressedActionsResultSerializer
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = self.validated_body(SuppressedActionsRequestSerializer)
        reason, dry_run = given.pop("reason"), given.pop("dry_run")
        actions_request, actor, at = (
            SuppressedActionsRequest(**given),
            acting_user(request),
            timezone.now(),
        )
        if dry_run:
            done = suppressed_actions.suppressed_pool_preview(actions_request, actor=actor, at=at)
        else:
            done = self.does(actions_request, reason=reason, actor=actor, at=at)
        return Response(SuppressedActionsResultSerializer(done).data)


@extend_schema_view(
    post=extend_schema(
        summary="Execute the suppressed isolations of a pool",
        description="For operators. Requires a reason. Isolated cards and nodes are returned to "
        "service only by a user.",
    )
)
class SuppressedIsolateView(_SuppressedActionsDecisionView):
    """Isolate all of them."""

    does = staticmethod(suppressed_actions.suppressed_pool_isolate)


@extend_schema_view(
    post=extend_schema(
        summary="Dismiss the suppressed isolations of a pool",
        description="For operators. Requires a reason; the faults are acknowledged with it.",
    )
)
class SuppressedDismissView(_SuppressedActionsDecisionView):
    """Leave all of it in use."""

    does = staticmethod(suppressed_actions.suppressed_pool_dismiss)
