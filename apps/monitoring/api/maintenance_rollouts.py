"""REST of maintenance rollouts, for operators of the fleet."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.fleet import selectors as fleet
from apps.monitoring.api.alerts import FleetOperatorViewSet
from apps.monitoring.models import Rollout, RolloutNode
from apps.monitoring.selectors.maintenance_rollouts import rollouts_visible
from apps.monitoring.services import maintenance_rollouts
from apps.monitoring.services.maintenance_rollouts import (
    LONGEST_RUN,
    MOST_ARGUMENTS,
    MOST_PARALLEL,
)
from controlplane.domain.health.maintenance_rollouts import RolloutEvent
from controlplane.web.rest import (
    ObjectReference,
    StrictSerializer,
    TextListField,
    VisibleUidField,
    supports_dry_run,
)


class MaintenanceRolloutNodeSerializer(serializers.ModelSerializer[RolloutNode]):
    node = ObjectReference()

    class Meta:
        model = RolloutNode
        fields = ("node", "domain", "state", "reason", "exit_code", "log_tail", "changed_at")


class MaintenanceRolloutSerializer(serializers.ModelSerializer[Rollout]):
    cluster = ObjectReference()
    labels = serializers.DictField(
        child=serializers.CharField(), help_text="Node labels that selected the nodes."
    )
    argv = TextListField()
    created_by = serializers.CharField(source="created_by.username")
    nodes = MaintenanceRolloutNodeSerializer(
        many=True, help_text="Nodes in the order of execution."
    )

    class Meta:
        model = Rollout
        fields = (
            "uid",
            "name",
            "cluster",
            "labels",
            "domain_label",
            "state",
            "argv",
            "image",
            "run_within",
            "burn_in",
            "parallel",
            "created_by",
            "created_at",
            "ended_at",
            "error",
            "nodes",
        )


class MaintenanceRolloutCreateSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=120)
    cluster = VisibleUidField(visible=lambda _user: fleet.clusters_with_counts())
    labels = serializers.DictField(
        child=serializers.CharField(max_length=200, allow_blank=True),
        required=False,
        default=dict,
        help_text="Required node labels; name matches the name of the node.",
    )
    argv = serializers.ListField(
        child=serializers.CharField(max_length=1000, trim_whitespace=False),
        max_length=MOST_ARGUMENTS,
        required=False,
        default=list,
        help_text="Program and arguments, executed without a shell.",
    )
    image = serializers.CharField(max_length=300, required=False, default="", allow_blank=True)
    run_within = serializers.IntegerField(
        min_value=1, max_value=LONGEST_RUN, required=False, default=600
    )
    burn_in = serializers.BooleanField(required=False, default=True)
    parallel = serializers.IntegerField(
        min_value=1, max_value=MOST_PARALLEL, required=False, default=1
    )
    domain_label = serializers.CharField(
        max_length=120, required=False, default="", allow_blank=True
    )


class MaintenanceRolloutViewSet(FleetOperatorViewSet[Rollout]):
    tag = "rollouts"
    summaries = {
        "list": "Maintenance rollouts",
        "retrieve": "Get a maintenance rollout with its nodes",
    }
    serializer_class = MaintenanceRolloutSerializer

    def get_queryset(self) -> QuerySet[Rollout]:
        return rollouts_visible(self.request.user).prefetch_related("nodes__node__cluster")

    @extend_schema(
        summary="Create a maintenance rollout",
        description="Nodes are isolated batch by batch, run the command, are tested and return to "
        "service. Commands on the machine of Ninefold itself require an administrator "
        "of the company.",
        request=MaintenanceRolloutCreateSerializer,
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        row = Rollout(**self.validated_body(MaintenanceRolloutCreateSerializer))
        maintenance_rollouts.maintenance_rollout_begin(
            rollout=row, actor=acting_user(request), at=timezone.now()
        )
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @post_action("Pause a maintenance rollout")
    def pause(self, request: Request, uid: str) -> Response:
        return self._apply_event(request, RolloutEvent.PAUSE)

    @post_action("Resume a maintenance rollout")
    def resume(self, request: Request, uid: str) -> Response:
        return self._apply_event(request, RolloutEvent.RESUME)

    @post_action(
        "Cancel a maintenance rollout",
        "Nodes in progress are completed; the remaining nodes are not changed.",
    )
    def cancel(self, request: Request, uid: str) -> Response:
        return self._apply_event(request, RolloutEvent.CANCEL)

    def _apply_event(self, request: Request, event: RolloutEvent) -> Response:
        row, actor = self.get_object(), acting_user(request)
        maintenance_rollouts.maintenance_rollout_control(
            rollout=row, event=event, actor=actor, at=timezone.now()
        )
        return Response(self.get_serializer(self.get_object()).data)
