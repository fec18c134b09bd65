"""Faults, what is out of use, and the rules and the policy by which that is decided."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.fleet.selectors import require_operator
from apps.monitoring.api import fault_serializers as serializers
from apps.monitoring.models import Fault, HealthRule, Isolation
from apps.monitoring.selectors.faults import faults_shown, isolations_shown
from apps.monitoring.selectors.judged_figures import rule_tried
from apps.monitoring.selectors.policies import health_stance
from apps.monitoring.services import faults, health_rules, isolations, policies
from controlplane.domain.common.permissions import Scope
from controlplane.domain.health.rule_documents import condition_of
from controlplane.web.rest import BoundedJSONParser, Query, ResourceViewSet

_TAGS = ["health"]


@extend_schema_view(
    list=extend_schema(summary="Faults", tags=_TAGS, parameters=[serializers.FaultFilters]),
    retrieve=extend_schema(summary="A fault", tags=_TAGS),
)
class FaultViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Fault]):
    """What is or was wrong with cards and nodes. Everybody who is logged in may see the fleet."""

    token_scope = Scope.ADMIN
    serializer_class = serializers.FaultSerializer
    queries = {"list": serializers.FaultFilters}

    def get_queryset(self) -> QuerySet[Fault]:
        return faults_shown()

    @extend_schema(
        summary="Acknowledge faults",
        description="For operators. A note stays with each of them.",
        tags=_TAGS,
        request=serializers.AcknowledgeSerializer,
        responses=serializers.AcknowledgedSerializer,
    )
    @idempotent
    @action(detail=False, methods=["post"])
    def acknowledge(self, request: Request) -> Response:
        given = self.checked(serializers.AcknowledgeSerializer)
        actor, at = acting_user(request), timezone.now()
        read = faults.faults_acknowledge(actor=actor, at=at, **given)
        return Response({"acknowledged": len(read)})


@extend_schema_view(
    list=extend_schema(
        summary="Cards and nodes out of use", tags=_TAGS, parameters=[serializers.IsolationFilters]
    ),
    retrieve=extend_schema(summary="A card or node out of use", tags=_TAGS),
)
class IsolationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Isolation]
):
    """From the taking out to the return; those that are back stay as history."""

    token_scope = Scope.ADMIN
    serializer_class = serializers.IsolationSerializer
    queries = {"list": serializers.IsolationFilters}

    def get_queryset(self) -> QuerySet[Isolation]:
        return isolations_shown()

    @extend_schema(
        summary="Take cards and nodes out of use",
        description=(
            "For operators. What runs there saves and stops; only a person gives them back. "
            "A card of a cluster that binds by node takes its whole node along."
        ),
        tags=_TAGS,
        request=serializers.IsolateSerializer,
        responses={201: serializers.IsolationsSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.checked(serializers.IsolateSerializer)
        actor, at = acting_user(request), timezone.now()
        begun = isolations.isolations_order(actor=actor, at=at, **given)
        return Response(self._those(begun), status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Give cards and nodes back",
        description="For operators. Whatever state they are in, with a reason that stays in the history.",
        tags=_TAGS,
        request=serializers.ReleaseSerializer,
        responses=serializers.IsolationsSerializer,
    )
    @idempotent
    @action(detail=False, methods=["post"])
    def release(self, request: Request) -> Response:
        given = self.checked(serializers.ReleaseSerializer)
        actor, at = acting_user(request), timezone.now()
        return Response(self._those(isolations.isolations_release(actor=actor, at=at, **given)))

    @extend_schema(
        summary="Have cards and nodes tested",
        description="For operators. The burn-in begins as soon as nothing runs there.",
        tags=_TAGS,
        request=serializers.UidsSerializer,
        responses=serializers.BurnInsAskedSerializer,
    )
    @idempotent
    @action(detail=False, methods=["post"])
    def test(self, request: Request) -> Response:
        given = self.checked(serializers.UidsSerializer)
        actor, at = acting_user(request), timezone.now()
        return Response({"asked": isolations.burn_ins_ask(actor=actor, at=at, **given)})

    def _those(self, changed: list[Isolation]) -> dict[str, object]:
        rows = self.get_queryset().filter(pk__in=[row.pk for row in changed])
        return {"isolations": self.get_serializer(rows, many=True).data}


@extend_schema_view(
    list=extend_schema(summary="Rules over figures", tags=_TAGS),
    retrieve=extend_schema(summary="A rule over figures", tags=_TAGS),
)
class HealthRuleViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[HealthRule]
):
    """Conditions over figures of cards, and how grave they are."""

    token_scope = Scope.ADMIN
    serializer_class = serializers.HealthRuleSerializer

    def get_queryset(self) -> QuerySet[HealthRule]:
        return HealthRule.objects.all()

    @extend_schema(
        summary="Make a rule",
        tags=_TAGS,
        request=serializers.HealthRuleCreateSerializer,
        responses={201: serializers.HealthRuleSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.checked(serializers.HealthRuleCreateSerializer)
        rule = health_rules.rule_create(actor=acting_user(request), at=timezone.now(), **given)
        return Response(self.get_serializer(rule).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a rule",
        tags=_TAGS,
        request=serializers.HealthRuleChangeSerializer,
        responses=serializers.HealthRuleSerializer,
    )
    def partial_update(self, request: Request, uid: str) -> Response:
        rule, actor = self.get_object(), acting_user(request)
        given = self.checked(serializers.HealthRuleChangeSerializer)
        row = health_rules.rule_change(rule=rule, actor=actor, at=timezone.now(), **given)
        return Response(self.get_serializer(row).data)

    @extend_schema(summary="Delete a rule", tags=_TAGS, responses={204: None})
    def destroy(self, request: Request, uid: str) -> Response:
        health_rules.rule_delete(rule=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Try a rule on the figures that are kept",
        description="When it would have fired over the last hours, on which cards. Nothing is changed.",
        tags=_TAGS,
        request=serializers.DryRunSerializer,
        responses=serializers.TrialsSerializer,
    )
    @action(detail=False, methods=["post"], url_path="dry-run")
    def dry_run(self, request: Request) -> Response:
        require_operator(acting_user(request))
        given = self.checked(serializers.DryRunSerializer)
        condition = condition_of(given["condition"])
        back = timedelta(hours=given["hours"])
        trials = rule_tried(condition, back=back, at=timezone.now())
        return Response(serializers.TrialsSerializer(trials).data)


class HealthPolicyView(APIView):
    """How far rules may go without a person."""

    token_scope = Scope.ADMIN
    parser_classes = (BoundedJSONParser,)

    @extend_schema(
        summary="The health policy", tags=_TAGS, responses=serializers.HealthPolicySerializer
    )
    def get(self, request: Request) -> Response:
        Query.read(request)
        return Response(serializers.HealthPolicySerializer(health_stance()).data)

    @extend_schema(
        summary="Change the health policy",
        description="For operators. What is not named stays as it is.",
        tags=_TAGS,
        request=serializers.HealthPolicyChangeSerializer,
        responses=serializers.HealthPolicySerializer,
    )
    def patch(self, request: Request) -> Response:
        Query.read(request)
        body = serializers.HealthPolicyChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        stance = policies.policy_change(
            actor=acting_user(request), at=timezone.now(), **body.validated_data
        )
        return Response(serializers.HealthPolicySerializer(stance).data)
