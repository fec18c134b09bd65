"""REST of actions suppressed by the guard, and the two decisions about all of a pool at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

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
    BoundedJSONParser,
    QuerySerializer,
    StrictSerializer,
)

_TAGS = ["health"]


class SuppressedPartSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    isolations = serializers.IntegerField()


class SuppressedPoolSerializer(serializers.Serializer[SuppressedPool]):
    """What waits of one chip in one cluster, and what isolating all of it would cost."""

    cluster = serializers.CharField(help_text="Its name.")
    cluster_uid = serializers.CharField()
    chip = serializers.CharField(help_text="Empty: of nodes without cards.")
    isolations = serializers.IntegerField(
        help_text="Cards, and whole nodes, that would go out of use."
    )
    nodes = serializers.IntegerField()
    since = serializers.DateTimeField(help_text="When the oldest was held back.")
    until = serializers.CharField(help_text="Name it in an act: what came later is not touched.")
    codes = SuppressedPartSerializer(many=True, help_text="Isolations by the code of the fault.")
    parts = SuppressedPartSerializer(
        many=True, help_text="By rack, or what else labels of nodes name."
    )
    cards = serializers.IntegerField(help_text="Cards that would go out of use.")
    works = serializers.IntegerField(help_text="Jobs and deployments that would stop.")
    size = serializers.IntegerField(help_text="Cards of the pool.")
    out = serializers.IntegerField(help_text="Of them out of use now.")
    usable = serializers.IntegerField(help_text="Of them usable now.")
    left = serializers.IntegerField(help_text="Usable once all of it is out of use.")


class SuppressedActionsSerializer(serializers.Serializer[Any]):
    pools = SuppressedPoolSerializer(many=True)


class SuppressedActionsRequestSerializer(StrictSerializer[Any]):
    cluster = UidField(help_text="Uid of the pool's cluster.")
    chip = serializers.CharField(max_length=60, allow_blank=True)
    until = UidField(required=False, help_text="As told of the pool; absent: all that waits now.")
    shown = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=LARGEST_INTEGER,
        help_text="How many isolations you saw: the answer says how many of them were left out.",
    )
    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=2000, help_text="Of an act."
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="Say what there is to decide; do nothing."
    )


class SuppressedActionsResultSerializer(serializers.Serializer[SuppressedActionsResult]):
    pool = SuppressedPoolSerializer(
        allow_null=True, help_text="Just before; null: nothing waited there."
    )
    done = serializers.IntegerField(help_text="Isolations that were decided; 0 in a dry run.")
    left_out = serializers.IntegerField(
        help_text="Shown, and not decided: the fault is over, or somebody was first."
    )


class SuppressedActionsView(APIView):
    """What rules would take out of use and the guard does not let them."""

    token_scope = Scope.ADMIN

    @extend_schema(
        summary="What the guard holds back", tags=_TAGS, responses=SuppressedActionsSerializer
    )
    def get(self, request: Request) -> Response:
        QuerySerializer.read(request)
        pools = suppressed_pools(at=timezone.now())
        return Response(SuppressedActionsSerializer({"pools": pools}).data)


class _ReleaseSuppressedView(APIView):
    """Decide about all of a pool at once; each of the two acts says by which service."""

    token_scope = Scope.ADMIN
    parser_classes = (BoundedJSONParser,)
    does: ClassVar[Callable[..., SuppressedActionsResult]]

    @extend_schema(
        tags=_TAGS,
        request=SuppressedActionsRequestSerializer,
        responses=SuppressedActionsResultSerializer,
    )
    @idempotent
    def post(self, request: Request) -> Response:
        QuerySerializer.read(request)
        body = SuppressedActionsRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = dict(body.validated_data)
        reason, dry_run = given.pop("reason"), given.pop("dry_run")
        actions_request, actor, at = (
            SuppressedActionsRequest(**given),
            acting_user(request),
            timezone.now(),
        )
        if dry_run:
            done = suppressed_actions.suppressed_preview(actions_request, actor=actor, at=at)
        else:
            done = self.does(actions_request, reason=reason, actor=actor, at=at)
        return Response(SuppressedActionsResultSerializer(done).data)


@extend_schema_view(
    post=extend_schema(
        summary="Isolate all that is held back of a pool",
        description="For operators, with a reason. Only a person gives it back.",
    )
)
class SuppressedIsolateView(_ReleaseSuppressedView):
    """Take all of it out of use."""

    does = staticmethod(suppressed_actions.suppressed_isolate)


@extend_schema_view(
    post=extend_schema(
        summary="Leave all that is held back of a pool",
        description="For operators, with a reason: the faults behind it are acknowledged.",
    )
)
class SuppressedDismissView(_ReleaseSuppressedView):
    """Leave all of it in use."""

    does = staticmethod(suppressed_actions.suppressed_dismiss)
