"""Defragmentation plans: proposing, approving and dismissing relocations of running workloads."""

from __future__ import annotations

from collections.abc import Iterable
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
from controlplane.domain.scheduling.defragmentation import DefragmentationPlan
from controlplane.domain.scheduling.defragmentation_runs import (
    DefragmentationPurpose,
    DefragmentationState,
)
from controlplane.web.reasons import ReasonSerializerField
from controlplane.web.rest import (
    CollectionViewSet,
    ListFilters,
    StrictSerializer,
    VisibleUidField,
)

MAX_NODES = 16


def _placeholder_claims(_user: Any) -> QuerySet[Claim]:
    """Placeholder: the real queryset depends on the request, see ``DefragmentationRequestSerializer.__init__``."""
    return Claim.objects.none()


class DefragmentationRequestSerializer(StrictSerializer[Any]):
    purpose = serializers.ChoiceField(choices=[purpose.value for purpose in DefragmentationPurpose])
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
        visible=_placeholder_claims,
        required=False,
        allow_null=True,
        default=None,
        help_text="Pending claim to free capacity for; only with purpose `room_for`.",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Return the proposal without storing it."
    )

    def __init__(self, *args: Any, claims: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if claims is not None:
            self.fields["claim"] = VisibleUidField(
                visible=claims, required=False, allow_null=True, default=None
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

    def plan_request(self) -> DefragmentationRequest:
        given = self.validated_data
        return DefragmentationRequest(
            purpose=DefragmentationPurpose(given["purpose"]),
            nodes=given["nodes"],
            chip=given["chip"],
            claim=given["claim"],
        )


class DefragmentationMoveSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    state = serializers.CharField(allow_null=True, help_text="Null in a dry run.")
    team = serializers.CharField()
    work = serializers.CharField(allow_null=True, help_text="Null if it is not visible to you.")
    cards = serializers.IntegerField()
    chip = serializers.CharField()
    from_nodes = serializers.ListField(child=serializers.CharField(), help_text="Uids of nodes.")
    to_nodes = serializers.ListField(child=serializers.CharField(), help_text="Uids of nodes.")
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


def defragmentation_json(
    row: Defragmentation, moves: list[DefragmentationMove], visibility: QueueVisibility
) -> dict[str, Any]:
    """As ``DefragmentationPlanSerializer`` says."""
    return {
        "uid": row.uid,
        "purpose": row.purpose,
        "state": row.state,
        "state_reason": row.state_reason,
        **_defragmentation_plan_values(row),
        "whole_found": row.whole_found,
        "fragments_found": row.fragments_found,
        "proposed_by": row.proposed_by_name,
        "expires_at": row.expires_at,
        "moves": [
            {
                "number": move.number,
                "state": move.state,
                **_workload_document(move.claim, visibility),
                "chip": move.chip,
                "from_nodes": [place["node"] for place in move.source],
                "to_nodes": [place["node"] for place in move.target],
                "lost_seconds": move.lost,
                "cost": move.cost,
            }
            for move in moves
        ],
    }


def defragmentation_proposal_json(
    purpose: DefragmentationPurpose,
    plan: DefragmentationPlan,
    claims: dict[str, Claim],
    visibility: QueueVisibility,
) -> dict[str, Any]:
    """A dry run, as ``DefragmentationPlanSerializer`` says."""
    return {
        "uid": None,
        "purpose": purpose.value,
        "state": None,
        "state_reason": "",
        **_defragmentation_plan_values(plan),
        "whole_found": None,
        "fragments_found": None,
        "proposed_by": None,
        "expires_at": None,
        "moves": [
            {
                "number": number,
                "state": None,
                **_workload_document(claims[move.claim], visibility),
                "chip": move.chip,
                "from_nodes": [replica.node for replica in move.source],
                "to_nodes": [replica.node for replica in move.target],
                "lost_seconds": move.lost.total_seconds(),
                "cost": move.cost,
            }
            for number, move in enumerate(plan.moves, 1)
        ],
    }


def _defragmentation_plan_values(plan: Defragmentation | DefragmentationPlan) -> dict[str, Any]:
    return {
        "reason": plan.reason,
        "whole_before": plan.whole_before,
        "whole_after": plan.whole_after,
        "fragments_before": plan.fragments_before,
        "fragments_after": plan.fragments_after,
        "cost": plan.cost,
        "gain": plan.gain,
    }


def _workload_document(claim: Claim, visibility: QueueVisibility) -> dict[str, Any]:
    return {
        "team": claim.team.name,
        "work": claim.work_name if visibility.can_name(claim) else None,
        "cards": claim.card_count,
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
        body = DefragmentationRequestSerializer(
            data=request.data,
            claims=_readable_pending_claims,
            context=self.get_serializer_context(),
        )
        body.is_valid(raise_exception=True)
        plan_request, at = body.plan_request(), timezone.now()
        if not body.validated_data["dry_run"]:
            row = services.defragmentation_propose(
                plan_request=plan_request, actor=acting_user(request), at=at
            )
            return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)
        plan = services.defragmentation_preview(plan_request=plan_request, at=at).plan
        claims = _claims_by_uid(move.claim for move in plan.moves)
        answer = defragmentation_proposal_json(
            plan_request.purpose, plan, claims, self._queue_visibility()
        )
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


def _readable_pending_claims(user: Any) -> QuerySet[Claim]:
    claims, _ = claims_readable(user)
    return claims.filter(state=ClaimState.PENDING)


def _claims_by_uid(uids: Iterable[str]) -> dict[str, Claim]:
    rows = Claim.objects.filter(uid__in=list(uids)).select_related("team", "queue")
    return {row.uid: row for row in rows}
