"""Dry run of a claim: the scheduler's decision without creating it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.quotas import selectors
from apps.quotas.api.queues import validate_chip_names
from apps.quotas.models import Queue
from apps.quotas.selectors.simulations import ClaimDryRunRequest, claim_dry_run
from controlplane.domain.common.permissions import Scope
from controlplane.domain.common.resources import Bytes, Resources
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.scheduling.what_if import DryRunOutcome
from controlplane.web.reasons import ReasonSerializerField
from controlplane.web.rest import (
    LARGEST_INTEGER,
    EnumField,
    StrictSerializer,
    StrictView,
    VisibleUidField,
)

_MOST_CARDS = 100_000


class ClaimDryRunRequestSerializer(StrictSerializer[Any]):
    queue = VisibleUidField(
        visible=selectors.queues_visible,
        help_text="Name or uid of a queue that your teams can use.",
    )
    chips = serializers.ListField(
        child=serializers.CharField(max_length=60),
        min_length=1,
        max_length=50,
        help_text="Acceptable chips in order of preference.",
    )
    cards = serializers.IntegerField(
        default=1,
        min_value=0,
        max_value=_MOST_CARDS,
        help_text="Cards of one replica, all on one node.",
    )
    replicas = serializers.IntegerField(default=1, min_value=1, max_value=_MOST_CARDS)
    memory = serializers.IntegerField(
        default=0,
        min_value=0,
        max_value=2**62,
        help_text="Memory of one replica in bytes; 0: no limit.",
    )
    priority = serializers.IntegerField(
        default=0, min_value=-LARGEST_INTEGER, max_value=LARGEST_INTEGER
    )
    run_seconds = serializers.IntegerField(
        default=None,
        allow_null=True,
        min_value=1,
        max_value=LARGEST_INTEGER,
        help_text="Expected run time in seconds; null: unknown.",
    )
    within = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=60,
        help_text="Topology level within one domain of which all replicas must be placed, for "
        "example leaf.",
    )
    near = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=60,
        help_text="Topology level within one domain of which replicas are placed if possible.",
    )

    def validate_chips(self, given: list[str]) -> tuple[str, ...]:
        return validate_chip_names(given)

    def validate_queue(self, queue: Queue) -> Queue:
        if refusal := selectors.queue_closed_reason(queue):
            raise serializers.ValidationError([refusal])
        return queue

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["cards"] * attrs["replicas"] > _MOST_CARDS:
            message = f"cards × replicas must be at most {_MOST_CARDS}"
            raise serializers.ValidationError({"cards": [message]})
        return attrs


class NodeCardsSerializer(serializers.Serializer[Any]):
    node = serializers.CharField()
    cards = serializers.IntegerField()


class DryRunEvictionSerializer(serializers.Serializer[Any]):
    claim = serializers.CharField(help_text="Uid of the claim.")
    queue = serializers.CharField()
    team = serializers.CharField(source="work.team")
    work_name = serializers.CharField(
        source="work.name", help_text="Empty if it is not visible to you."
    )
    chip = serializers.CharField()
    cards = serializers.IntegerField()
    lost_seconds = serializers.IntegerField(help_text="Seconds of progress that would be lost.")
    reason = ReasonSerializerField()


class ClaimDryRunSerializer(serializers.Serializer[Any]):
    outcome = EnumField(
        DryRunOutcome,
        help_text="starts: placed immediately; reclaims: other claims would be evicted; waits: "
        "stays pending.",
    )
    chip = serializers.CharField(
        help_text="Chip that would be allocated; empty if it stays pending."
    )
    nodes = NodeCardsSerializer(many=True)
    code = serializers.CharField(help_text="Code of the pending reason; empty if it starts.")
    reason = ReasonSerializerField()
    stopped = DryRunEvictionSerializer(many=True)


class ClaimDryRunView(StrictView):
    tag = "scheduling"
    token_scope = Scope.READ

    @extend_schema(
        summary="Dry run of a claim",
        description="Returns the placement, the pending reason, or the claims that would be "
        "evicted. Nothing is changed.",
        request=ClaimDryRunRequestSerializer,
        responses=ClaimDryRunSerializer,
    )
    def post(self, request: Request) -> Response:
        given = self.validated_body(ClaimDryRunRequestSerializer)
        role = RoleShape(
            name="worker",
            replicas=given["replicas"],
            cards=given["cards"],
            limits=Resources(memory=Bytes(given["memory"])),
        )
        seconds = given["run_seconds"]
        dry_run = ClaimDryRunRequest(
            queue=given["queue"],
            shape=GangShape(roles=(role,)),
            chips=given["chips"],
            priority=given["priority"],
            runtime=None if seconds is None else timedelta(seconds=seconds),
            within=given["within"],
            near=given["near"],
        )
        answer = claim_dry_run(dry_run, user=acting_user(request), at=timezone.now())
        return Response(ClaimDryRunSerializer(answer).data)
