"""REST of faults, isolations, health rules and the health policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.fleet import selectors as fleet
from apps.fleet.models import Node
from apps.monitoring.models import Fault, HealthPolicy, Isolation
from apps.monitoring.selectors.faults import (
    fault_meaning,
    faults_newest_first,
    isolations_newest_first,
)
from apps.monitoring.selectors.health_snapshots import (
    health_policy,
)
from apps.monitoring.services import faults, health_rules, isolations
from apps.monitoring.services.burn_ins import BurnInEvidence
from controlplane.domain.common.permissions import Scope
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.isolations import IsolationState
from controlplane.web import rest
from controlplane.web.type_schemas import DeclaredField

LEVELS = [(level.value, f"L{level.value}") for level in FaultLevel]
#: Rows that one request may act on.
MOST = 500


class UidField(serializers.RegexField):
    """A public name, where a list or a filter names something."""

    def __init__(self, **options: Any) -> None:
        super().__init__(f"^{rest.UID}$", **options)


def node_uid_field(**options: Any) -> rest.VisibleUidField[Node]:
    """A node; everybody who is signed in may see the fleet."""
    return rest.VisibleUidField(visible=lambda _user: fleet.nodes_with_cluster(), **options)


class FaultSerializer(serializers.ModelSerializer[Fault]):
    cluster = serializers.CharField(source="node.cluster.name")
    node = rest.ObjectReference()
    card = rest.ObjectReference(allow_null=True, help_text="Card; null: fault of the node.")
    level = serializers.IntegerField(help_text="Severity from 1 (recorded only) to 6 (isolation).")
    cause = serializers.SerializerMethodField(help_text="Meaning of the code; may be empty.")
    remedy = serializers.SerializerMethodField(help_text="Recommended action; may be empty.")

    class Meta:
        model = Fault
        fields = (
            "uid",
            "cluster",
            "node",
            "card",
            "origin",
            "vendor",
            "code",
            "level",
            "message",
            "cause",
            "remedy",
            "count",
            "began_at",
            "reported_at",
            "ended_at",
            "acknowledged_at",
            "acknowledged_by_name",
            "note",
        )

    def get_cause(self, fault: Fault) -> str:
        meaning = fault_meaning(fault.vendor, fault.code)
        return meaning.cause if meaning else ""

    def get_remedy(self, fault: Fault) -> str:
        meaning = fault_meaning(fault.vendor, fault.code)
        return meaning.remedy if meaning else ""


class FaultFilters(rest.ListFilters):
    level = serializers.ChoiceField(choices=LEVELS, required=False)
    origin = rest.EnumField(SignalOrigin, required=False)
    code = serializers.CharField(required=False, max_length=120)
    cluster = serializers.CharField(required=False, max_length=40, help_text="Name of the object.")
    node = node_uid_field(required=False, help_text="Uid of the object.")
    card = rest.VisibleUidField(
        visible=lambda _user: fleet.cards_with_node(),
        required=False,
        help_text="Uid of the object.",
    )
    standing = serializers.BooleanField(
        required=False, help_text="Return only open faults, or only resolved ones."
    )
    acknowledged = serializers.BooleanField(required=False)
    lookups = {
        "level": "level",
        "origin": "origin",
        "code": "code",
        "cluster": "node__cluster__name",
        "node": "node",
        "card": "card",
        "standing": "ended_at__isnull",
    }

    @classmethod
    def apply(cls, rows: QuerySet[rest.M, Any], given: Mapping[str, Any]) -> QuerySet[rest.M, Any]:
        rows = super().apply(rows, given)
        if "acknowledged" in given:
            rows = rows.filter(acknowledged_at__isnull=not given["acknowledged"])
        return rows


class IsolationUidsSerializer(rest.StrictSerializer[Any]):
    uids = serializers.ListField(child=UidField(), min_length=1, max_length=MOST)


class FaultAcknowledgeSerializer(IsolationUidsSerializer):
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class FaultAcknowledgedSerializer(serializers.Serializer[Any]):
    acknowledged = serializers.IntegerField(
        help_text="Number of faults that were not acknowledged before."
    )


class IsolationSerializer(serializers.ModelSerializer[Isolation]):
    cluster = serializers.CharField(source="node.cluster.name")
    node = rest.ObjectReference()
    card = rest.ObjectReference(allow_null=True, help_text="Card; null: the whole node.")
    state = rest.EnumField(IsolationState)
    fault = serializers.CharField(source="fault.uid", allow_null=True, default=None)
    evidence = DeclaredField(
        declared=lambda: BurnInEvidence,
        help_text="Result of the last burn-in run; empty: there was none.",
    )

    class Meta:
        model = Isolation
        fields = (
            "uid",
            "cluster",
            "node",
            "card",
            "state",
            "reason",
            "actor_name",
            "fault",
            "began_at",
            "drained_at",
            "burn_ins",
            "tested_at",
            "proved_at",
            "evidence",
            "ended_at",
        )
        extra_kwargs = {
            "actor_name": {"help_text": "Who took it out of use; empty: a rule."},
            "burn_ins": {"help_text": "How many tests it has begun."},
        }


class IsolationFilters(rest.ListFilters):
    state = rest.EnumField(IsolationState, required=False)
    cluster = serializers.CharField(required=False, max_length=40, help_text="Name of the object.")
    node = node_uid_field(required=False, help_text="Uid of the object.")
    standing = serializers.BooleanField(
        required=False, help_text="Return only active isolations, or only ended ones."
    )
    lookups = {
        "state": "state",
        "cluster": "node__cluster__name",
        "node": "node",
        "standing": "ended_at__isnull",
    }


class IsolationCreateSerializer(rest.StrictSerializer[Any]):
    nodes = serializers.ListField(child=UidField(), required=False, default=list, max_length=MOST)
    cards = serializers.ListField(child=UidField(), required=False, default=list, max_length=MOST)
    reason = serializers.CharField(max_length=2000)


class ChangedIsolationsSerializer(serializers.Serializer[Any]):
    """Those that this changed."""

    isolations = IsolationSerializer(many=True)


class IsolationReleaseSerializer(IsolationUidsSerializer):
    reason = serializers.CharField(max_length=2000)


class BurnInsRequestedSerializer(serializers.Serializer[Any]):
    asked = serializers.IntegerField(help_text="Number of burn-in runs requested.")


class HealthPolicySerializer(serializers.Serializer[Any]):
    automatic = serializers.BooleanField(
        help_text="Whether actions of rules are executed automatically."
    )
    settings = serializers.SerializerMethodField(
        help_text="Guard limits and intervals: durations in seconds, shares in thousandths."
    )
    changed_by_name = serializers.CharField()
    changed_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.DictField(child=serializers.FloatField()))
    def get_settings(self, row: HealthPolicy) -> dict[str, float]:
        return row.policy.as_settings()


class HealthPolicyChangeSerializer(rest.StrictSerializer[Any]):
    automatic = serializers.BooleanField(required=False)
    settings = serializers.DictField(child=serializers.FloatField(), required=False)


class FaultViewSet(rest.CollectionViewSet[Fault]):
    """What is or was wrong with cards and nodes. Everybody who is logged in may see the fleet."""

    tag = "health"
    summaries = {"list": "Faults", "retrieve": "A fault"}
    token_scope = Scope.ADMIN
    serializer_class = FaultSerializer
    queries = {"list": FaultFilters}
    visible = staticmethod(lambda _user: faults_newest_first())

    @post_action(
        "Acknowledge faults",
        "For operators. The note is stored with each fault.",
        request=FaultAcknowledgeSerializer,
        responses=FaultAcknowledgedSerializer,
        detail=False,
    )
    def acknowledge(self, request: Request) -> Response:
        given = self.validated_body(FaultAcknowledgeSerializer)
        actor, at = acting_user(request), timezone.now()
        read = faults.faults_acknowledge(actor=actor, at=at, **given)
        return Response({"acknowledged": len(read)})


class IsolationViewSet(rest.CollectionViewSet[Isolation]):
    """Open isolations and ended ones."""

    tag = "health"
    summaries = {"list": "Isolations", "retrieve": "Get an isolation"}
    token_scope = Scope.ADMIN
    serializer_class = IsolationSerializer
    queries = {"list": IsolationFilters}
    visible = staticmethod(lambda _user: isolations_newest_first())

    @extend_schema(
        summary="Isolate cards and nodes",
        description="For operators. Running workloads are evicted. Isolated cards and nodes are "
        "returned to service only by a user. On a cluster that binds by node, the "
        "whole node is isolated.",
        request=IsolationCreateSerializer,
        responses={201: ChangedIsolationsSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(IsolationCreateSerializer)
        actor, at = acting_user(request), timezone.now()
        begun = isolations.isolations_request(actor=actor, at=at, **given)
        return Response(self._isolation_response(begun), status=status.HTTP_201_CREATED)

    @post_action(
        "Return cards and nodes to service",
        "For operators, in any state. The reason is stored in the history.",
        request=IsolationReleaseSerializer,
        responses=ChangedIsolationsSerializer,
        detail=False,
    )
    def release(self, request: Request) -> Response:
        given = self.validated_body(IsolationReleaseSerializer)
        actor, at = acting_user(request), timezone.now()
        return Response(
            self._isolation_response(isolations.isolations_release(actor=actor, at=at, **given))
        )

    @post_action(
        "Request burn-in runs of cards and nodes",
        "For operators. The burn-in run starts when no workload runs there.",
        request=IsolationUidsSerializer,
        responses=BurnInsRequestedSerializer,
        detail=False,
    )
    def test(self, request: Request) -> Response:
        given = self.validated_body(IsolationUidsSerializer)
        actor, at = acting_user(request), timezone.now()
        return Response({"asked": isolations.burn_ins_request(actor=actor, at=at, **given)})

    def _isolation_response(self, changed: list[Isolation]) -> dict[str, object]:
        rows = self.get_queryset().filter(pk__in=[row.pk for row in changed])
        return {"isolations": self.get_serializer(rows, many=True).data}


class HealthPolicyView(rest.StrictView):
    """Limits of automatic actions."""

    tag = "health"
    token_scope = Scope.ADMIN

    @extend_schema(summary="The health policy", responses=HealthPolicySerializer)
    def get(self, request: Request) -> Response:
        return Response(HealthPolicySerializer(health_policy()).data)

    @extend_schema(
        summary="Change the health policy",
        description="For operators. Omitted fields are not changed.",
        request=HealthPolicyChangeSerializer,
        responses=HealthPolicySerializer,
    )
    @rest.supports_dry_run
    def patch(self, request: Request) -> Response:
        given = self.validated_body(HealthPolicyChangeSerializer)
        row = health_rules.health_policy_change(
            actor=acting_user(request), at=timezone.now(), **given
        )
        return Response(HealthPolicySerializer(row).data)
