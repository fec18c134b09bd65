"""Defragmentation plans: proposing, approving and dismissing relocations of running workloads."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.quotas.models import Claim, Defragmentation, DefragmentationMove, Queue
from apps.quotas.selectors import defragmentation as selectors
from apps.quotas.selectors.claims import claims_readable
from apps.quotas.selectors.queues import QueueVisibility, queue_visibility_of
from apps.quotas.services import defragmentation as services
from apps.quotas.services.defragmentation import DefragmentationRequest
from controlplane.domain.common.permissions import Scope
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.defragmentation_runs import (
    DefragmentationPurpose,
    DefragmentationState,
)
from controlplane.web.reasons import ReasonSerializerField
from controlplane.web.rest import (
    CollectionViewSet,
    EnumField,
    ListFilters,
    StrictSerializer,
    TextListField,
    VisibleUidField,
)

MAX_NODES = 16


def _readable_pending_claims(user: Any) -> QuerySet[Claim]:
    # At import, the field is declared with an anonymous user; no query is possible then.
    if user.is_anonymous:
        return Claim.objects.none()
    claims, _ = claims_readable(user)
    return claims.filter(state=ClaimState.PENDING)


class DefragmentationRequestSerializer(StrictSerializer[Any]):
    purpose = EnumField(DefragmentationPurpose)
    nodes = serializers.IntegerField(
        min_value=1, max_value=MAX_NODES, default=1, help_text="Number of empty nodes to free."
    )
    chip = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=60,
        help_text="Chip of the empty nodes; empty: any.",
    )
    claim = VisibleUidField(
        visible=_readable_pending_claims,
        required=False,
        allow_null=True,
        default=None,
        help_text="Pending claim to free capacity for; only with purpose `room_for`.",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Return the proposal without storing it."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for_claim = attrs["purpose"] == DefragmentationPurpose.ROOM_FOR
        if for_claim and attrs["claim"] is None:
            raise serializers.ValidationError(
                {"claim": ["say which waiting claim is to have room"]}
            )
        if not for_claim and attrs["claim"] is not None:
            raise serializers.ValidationError(
                {"claim": ["only room_for is for a claim; leave it out"]}
            )
        return attrs


class DefragmentationMoveSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    state = serializers.CharField(allow_null=True, help_text="Null in a dry run.")
    team = serializers.CharField()
    work = serializers.CharField(allow_null=True, help_text="Null if it is not visible to you.")
    cards = serializers.IntegerField()
    chip = serializers.CharField()
    from_nodes = TextListField(help_text="Uids of nodes.")
    to_nodes = TextListField(help_text="Uids of nodes.")
    lost_seconds = serializers.FloatField(help_text="Seconds of progress that are lost.")
    cost = serializers.FloatField(help_text="Cost in card-seconds, including the restart.")


class DefragmentationPlanSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField(allow_null=True, help_text="Null in a dry run.")
    purpose = serializers.CharField()
    state = serializers.CharField(allow_null=True)
    state_reason = ReasonSerializerField()
    reason = ReasonSerializerField(help_text="Expected result.")
    whole_before = serializers.IntegerField()
    whole_after = serializers.IntegerField()
    whole_found = serializers.IntegerField(
        allow_null=True, help_text="Empty nodes measured at the end."
    )
    fragments_before = serializers.FloatField()
    fragments_after = serializers.FloatField()
    fragments_found = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField(help_text="Cost of the relocations in card-seconds.")
    gain = serializers.FloatField(help_text="Value of the freed capacity in card-seconds.")
    proposed_by = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    moves = DefragmentationMoveSerializer(many=True)


_PLAN_COLUMNS = (
    "purpose",
    "state_reason",
    "reason",
    "whole_before",
    "whole_after",
    "whole_found",
    "fragments_before",
    "fragments_after",
    "fragments_found",
    "cost",
    "gain",
    "expires_at",
)


def defragmentation_json(
    row: Defragmentation, moves: list[DefragmentationMove], visibility: QueueVisibility
) -> dict[str, Any]:
    """As ``DefragmentationPlanSerializer`` says; the rows of a dry run are not stored."""
    stored = bool(row.pk)
    return {
        **{name: getattr(row, name) for name in _PLAN_COLUMNS},
        "uid": row.uid if stored else None,
        "state": row.state if stored else None,
        "proposed_by": row.proposed_by_name or None,
        "moves": [
            {
                "number": move.number,
                "state": move.state if stored else None,
                "team": move.claim.team.name,
                "work": move.claim.work_name if visibility.can_name(move.claim) else None,
                "cards": move.claim.card_count,
                "chip": move.chip,
                "from_nodes": [place["node"] for place in move.source],
                "to_nodes": [place["node"] for place in move.target],
                "lost_seconds": move.lost,
                "cost": move.cost,
            }
            for move in moves
        ],
    }


class DefragmentationPlanFilters(ListFilters):
    lookups = {"state": "state__in"}

    state = serializers.MultipleChoiceField(
        choices=[state.value for state in DefragmentationState], required=False
    )


@extend_schema_view(
    list=extend_schema(
        summary="Defragmentation plans",
        description="Plans that relocate workloads of your teams, free cards for them, or that you proposed.",
    )
)
class DefragmentationPlanViewSet(CollectionViewSet[Defragmentation]):
    tag = "scheduling"
    summaries = {"retrieve": "A defragmentation plan"}
    token_scope = Scope.ADMIN
    serializer_class = DefragmentationPlanSerializer
    queries = {"list": DefragmentationPlanFilters}
    visible = staticmethod(selectors.defragmentations_visible)

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        """Serialize rows for the caller, without names of workloads that the caller may not see."""
        if args and kwargs.get("many"):
            args = ([self._plan_document(row) for row in args[0]], *args[1:])
        elif args and isinstance(args[0], Defragmentation):
            args = (self._plan_document(args[0]), *args[1:])
        return super().get_serializer(*args, **kwargs)

    def _plan_document(self, row: Defragmentation) -> dict[str, Any]:
        return defragmentation_json(
            row, list(selectors.relocations_of(row)), self._queue_visibility()
        )

    def _queue_visibility(self) -> QueueVisibility:
        return queue_visibility_of(self.request.user, Queue.objects.all())

    @extend_schema(
        summary="Propose a defragmentation plan",
        description="The plan is computed immediately and can be approved for 30 minutes. "
        "With `dry_run` it is not stored.",
        request=DefragmentationRequestSerializer,
        responses={
            200: DefragmentationPlanSerializer,
            201: DefragmentationPlanSerializer,
        },
    )
    @idempotent
    def create(self, request: Request) -> Response:
        selectors.require_permission_to_propose(request.user)
        given = self.validated_body(DefragmentationRequestSerializer)
        dry_run, purpose = given.pop("dry_run"), DefragmentationPurpose(given.pop("purpose"))
        plan_request, at = DefragmentationRequest(purpose=purpose, **given), timezone.now()
        if not dry_run:
            row = services.defragmentation_propose(
                plan_request=plan_request, actor=acting_user(request), at=at
            )
            return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)
        row, moves = services.defragmentation_preview(plan_request=plan_request, at=at)
        answer = defragmentation_json(row, moves, self._queue_visibility())
        return Response(DefragmentationPlanSerializer(answer).data)

    @post_action(
        "Approve a defragmentation plan",
        "Refused if the fleet has changed since the proposal; the response lists the changes.",
    )
    def approve(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        services.defragmentation_approve(plan=row, actor=acting_user(request), at=timezone.now())
        return Response(self.get_serializer(row).data)

    @post_action(
        "Dismiss a defragmentation plan", "A running plan stops after the current relocation."
    )
    def dismiss(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        services.defragmentation_dismiss(plan=row, actor=acting_user(request), at=timezone.now())
        return Response(self.get_serializer(row).data)
