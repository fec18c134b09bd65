from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import post_action
from apps.accounts.api.serializers import TeamListFilters
from apps.fleet.models import Node
from apps.quotas import selectors
from apps.quotas.models import Claim, WhatIf
from apps.quotas.selectors.claims import claim_explanation
from apps.quotas.selectors.forecasts import VisibleForecast, what_if_result, what_ifs_visible
from apps.quotas.selectors.queues import queue_visibility_of, queues_active
from apps.quotas.services.forecasts import WhatIfRequest, what_if_create
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.what_if import (
    CHANGE_KINDS,
    MOST_CARDS,
    MOST_NODES,
    AddGuaranteedCards,
    AddNodes,
    ChangePriority,
    DrainNode,
    WhatIfChange,
)
from controlplane.web import rest
from controlplane.web.reasons import ReasonSerializerField
from controlplane.web.type_schemas import DeclaredField, ScalarMapField, list_type, tagged_union


class QueueStatusSerializer(serializers.Serializer[Any]):
    reserved = serializers.IntegerField()
    guaranteed = serializers.IntegerField()
    cap = serializers.IntegerField(allow_null=True)
    used = serializers.IntegerField()
    borrowed = serializers.IntegerField(help_text="Cards in use above the guaranteed quota.")
    lent = serializers.IntegerField(help_text="Guaranteed cards that are in use by other queues.")
    idle = serializers.IntegerField(help_text="Guaranteed cards that are not in use.")


class QueueChipStatusSerializer(serializers.Serializer[Any]):
    chip = serializers.CharField(help_text="Chip; empty: all chips.", allow_blank=True)
    standing = QueueStatusSerializer()


class BlockingWorkloadSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(allow_blank=True, help_text="Empty if it belongs to another team.")
    team = serializers.CharField()
    cards = serializers.IntegerField()


class StartForecastSerializer(serializers.Serializer[Any]):
    starts_at = serializers.DateTimeField(allow_null=True)
    earliest = serializers.DateTimeField(allow_null=True)
    latest = serializers.DateTimeField(allow_null=True)
    chip = serializers.CharField(allow_blank=True)
    nodes = serializers.IntegerField()


class ClaimForecastSerializer(StartForecastSerializer):
    blocked_by = BlockingWorkloadSerializer(many=True)
    others = serializers.IntegerField(help_text="Number of further blocking workloads.")
    place = serializers.IntegerField(
        allow_null=True, help_text="Position among all pending claims, from 1."
    )
    created_at = serializers.DateTimeField(allow_null=True)
    beyond = serializers.BooleanField(
        help_text="Whether the claim was simulated and does not start within a day."
    )
    unseen = serializers.BooleanField(
        help_text="Whether the claim was not simulated because too many claims are ahead of it."
    )


def forecast_json(outlook: VisibleForecast | None) -> dict[str, Any]:
    """What is known; nothing but empty values where nobody has looked yet."""
    return dict(ClaimForecastSerializer(outlook or VisibleForecast()).data)


class ClaimExplanationSerializer(serializers.Serializer[Any]):
    state = serializers.CharField(source="claim.state")
    explanation = ReasonSerializerField(source="claim.explanation")
    numbers = ScalarMapField(source="claim.explanation_numbers")
    queue = rest.ObjectReference(source="claim.queue")
    shares = QueueChipStatusSerializer(
        many=True, help_text="Quota status of its queue for the requested chips."
    )
    free = serializers.DictField(child=serializers.IntegerField(), help_text="Free cards by chip.")
    place = serializers.IntegerField(allow_null=True, help_text="Position in its queue, from 1.")
    waiting = serializers.IntegerField(help_text="Pending claims in its queue.")
    forecast = ClaimForecastSerializer(source="outlook", allow_null=True)
    looked_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of the last scheduling cycle."
    )


class AddGuaranteedCardsSerializer(rest.StrictSerializer[Any]):
    chip = serializers.CharField(max_length=60)
    cards = serializers.IntegerField(min_value=-MOST_CARDS, max_value=MOST_CARDS)


class AddNodesSerializer(rest.StrictSerializer[Any]):
    like = rest.VisibleUidField[Node](
        visible=lambda _user: Node.objects.all(), help_text="Uid of the node."
    )
    nodes = serializers.IntegerField(min_value=1, max_value=MOST_NODES)


class WhatIfChangesSerializer(rest.StrictSerializer[Any]):
    """What would be different: at least one of these."""

    more_cards = AddGuaranteedCardsSerializer(
        required=False,
        help_text="Additional guaranteed cards of the claim's queue; negative: fewer.",
    )
    more_nodes = AddNodesSerializer(required=False)
    drain_node = rest.VisibleUidField[Node](
        visible=lambda _user: Node.objects.all(), required=False, help_text="Uid of the node."
    )
    priority = serializers.IntegerField(
        required=False, min_value=-1000, max_value=1000, help_text="Priority of the claim."
    )


def what_if_changes_from_request(given: Mapping[str, Any], *, claim: Claim) -> list[WhatIfChange]:
    """The changes that a checked question names."""
    changes: list[WhatIfChange] = []
    if more := given.get("more_cards"):
        queue = claim.queue.uid
        changes.append(AddGuaranteedCards(queue=queue, chip=more["chip"], cards=more["cards"]))
    if nodes := given.get("more_nodes"):
        changes.append(AddNodes(like=nodes["like"].uid, nodes=nodes["nodes"]))
    if node := given.get("drain_node"):
        changes.append(DrainNode(node=node.uid))
    if "priority" in given:
        changes.append(ChangePriority(claim=claim.uid, priority=given["priority"]))
    return changes


class StartTimeChangeSerializer(serializers.Serializer[Any]):
    work = BlockingWorkloadSerializer()
    gained = serializers.DurationField(
        allow_null=True,
        help_text="Seconds by which the start moves forward; negative if it is delayed.",
    )
    before = StartForecastSerializer(allow_null=True)
    after = StartForecastSerializer(allow_null=True)


class WhatIfResultSerializer(serializers.Serializer[Any]):
    own = StartTimeChangeSerializer(allow_null=True)
    earlier = StartTimeChangeSerializer(many=True)
    later = StartTimeChangeSerializer(many=True)
    stopped = StartTimeChangeSerializer(
        many=True, help_text="Running claims that would be evicted."
    )
    earlier_count = serializers.IntegerField()
    later_count = serializers.IntegerField()
    stopped_count = serializers.IntegerField()
    starting_before = serializers.IntegerField(
        help_text="Claims that start within a day without the changes."
    )
    starting_after = serializers.IntegerField()
    waiting = serializers.IntegerField()
    looked_at = serializers.IntegerField()
    seconds = serializers.FloatField()


class WhatIfSerializer(serializers.ModelSerializer[WhatIf]):
    queue = rest.ObjectReference()
    changes = DeclaredField(declared=lambda: list_type(tagged_union(CHANGE_KINDS, suffix="Change")))

    class Meta:
        model = WhatIf
        fields = ("uid", "state", "queue", "changes", "refusal", "created_at", "answered_at")


class WhatIfOutcomeSerializer(serializers.Serializer[Any]):
    asked = WhatIfSerializer()
    answer = WhatIfResultSerializer(allow_null=True, help_text="Result; null until it is computed.")


class ReclaimPreviewQuery(rest.QuerySerializer):
    chip = serializers.CharField(max_length=60)
    cards = serializers.IntegerField(min_value=1, max_value=MOST_CARDS)
    together = serializers.IntegerField(
        min_value=1, max_value=64, default=1, help_text="Cards per replica, all on one node."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["cards"] % attrs["together"]:
            raise serializers.ValidationError(
                {"cards": [f"give a multiple of {attrs['together']}, got {attrs['cards']}"]}
            )
        return attrs


class ReclaimVictimSerializer(serializers.Serializer[Any]):
    work = BlockingWorkloadSerializer()
    queue = serializers.CharField()
    cards = serializers.IntegerField()
    lost = serializers.DurationField(help_text="Seconds of progress since the last checkpoint.")
    reason = ReasonSerializerField()


class ReclaimPreviewSerializer(serializers.Serializer[Any]):
    starts = serializers.BooleanField(help_text="Whether the claim would start without evictions.")
    reason = ReasonSerializerField()
    cards = serializers.IntegerField(help_text="Cards that would be reclaimed.")
    losers = ReclaimVictimSerializer(many=True)


class WhatIfViewSet(rest.CollectionViewSet[WhatIf]):
    """Questions about claims of the caller's teams."""

    tag = "scheduling"
    summaries = {"list": "What-if requests"}
    token_scope = Scope.JOBS
    serializer_class = WhatIfSerializer
    visible = staticmethod(what_ifs_visible)

    @extend_schema(summary="A what-if request and its result", responses=WhatIfOutcomeSerializer)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(_what_if_json(self.get_object(), request))


def _what_if_json(what_if_row: WhatIf, request: Request) -> dict[str, Any]:
    answer = what_if_result(
        what_if_row, visibility=queue_visibility_of(request.user, queues_active())
    )
    return {
        "asked": WhatIfSerializer(what_if_row).data,
        "answer": WhatIfResultSerializer(answer).data if answer else None,
    }


class RoleShapeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    replicas = serializers.IntegerField()
    cards = serializers.IntegerField(help_text="Cards of one replica.")
    cpu = serializers.IntegerField(help_text="CPU of one replica in thousandths of a core.")
    memory = serializers.IntegerField(help_text="Memory of one replica in bytes; 0: no limit.")


class ReplicaPlacementSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    index = serializers.IntegerField()
    node = serializers.CharField(help_text="Uid of the node.")
    cards = serializers.ListField(child=serializers.IntegerField())


class ClaimSerializer(serializers.ModelSerializer[Claim]):
    team = rest.ObjectReference()
    queue = rest.ObjectReference()
    shape = RoleShapeSerializer(many=True)
    chips = rest.TextListField()
    placement = ReplicaPlacementSerializer(many=True)
    explanation = ReasonSerializerField(help_text="Pending reason or placement.")
    explanation_numbers = ScalarMapField()

    class Meta:
        model = Claim
        fields = (
            "uid",
            "state",
            "team",
            "queue",
            "owner_kind",
            "owner_uid",
            "shape",
            "card_count",
            "chips",
            "priority",
            "explanation",
            "explanation_numbers",
            "chip",
            "placement",
            "progress",
            "created_at",
            "admitted_at",
            "revoke_by",
            "released_at",
            "release_reason",
        )


class ClaimFilters(TeamListFilters):
    lookups = {
        "state": "state__in",
        "team": "team",
        "queue": "queue__name",
        "owner": "owner_uid",
    }

    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in ClaimState], required=False
    )
    queue = serializers.CharField(required=False, help_text="Name of the queue.")
    owner = serializers.CharField(required=False, help_text="Uid of an attempt or a replica.")


class ClaimViewSet(rest.CollectionViewSet[Claim]):
    """What the caller's teams ask of the scheduler, and what they hold."""

    tag = "scheduling"
    summaries = {"list": "Claims", "retrieve": "A claim"}
    token_scope = Scope.JOBS
    serializer_class = ClaimSerializer
    queries = {"list": ClaimFilters}
    visible = staticmethod(selectors.claims_visible)

    @extend_schema(
        summary="Pending reason or placement of a claim", responses=ClaimExplanationSerializer
    )
    @action(detail=True)
    def explanation(self, request: Request, uid: str) -> Response:
        found = claim_explanation(self.get_object(), user=request.user)
        return Response(ClaimExplanationSerializer(found).data)

    @extend_schema(
        summary="Forecast of a pending claim",
        description="From the latest forecast, at most one day ahead; `starts_at` is null if it is unknown.",
        responses=ClaimForecastSerializer,
    )
    @action(detail=True)
    def forecast(self, request: Request, uid: str) -> Response:
        found = claim_explanation(self.get_object(), user=request.user)
        return Response(forecast_json(found.outlook))

    @post_action(
        "Request a what-if for a claim",
        "Nothing is changed. The result is available at `/what-ifs/{uid}`.",
        request=WhatIfChangesSerializer,
        responses={202: WhatIfOutcomeSerializer},
        url_path="what-if",
    )
    def what_if(self, request: Request, uid: str) -> Response:
        claim = self.get_object()
        accounts.require_permission(request.user, Permission.VIEW, team=claim.team)
        given = self.validated_body(WhatIfChangesSerializer)
        question = WhatIfRequest(
            changes=what_if_changes_from_request(given, claim=claim), queue=claim.queue, claim=claim
        )
        what_if_row = what_if_create(question=question, actor=acting_user(request))
        return Response(_what_if_json(what_if_row, request), status=status.HTTP_202_ACCEPTED)
