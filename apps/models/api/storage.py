"""Storage by REST: who uses what, quotas and rules, and what can be deleted or had back."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.accounts.models import Team
from apps.models.api import storage_serializers as serializers
from apps.models.models import Artifact, StorageRun
from apps.models.selectors import artifacts_visible
from apps.models.selectors import storage as selectors
from apps.models.services import storage as services
from apps.models.services.storage_retention import retention_plan, retention_preview
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.domain.storage.retention import RetentionPlan, RetentionRules
from controlplane.web.rest import Query, ResourceViewSet

_TEAM = OpenApiParameter("team", OpenApiTypes.STR, OpenApiParameter.PATH, description="Its uid.")


class StorageView(APIView):
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="Who uses how much", tags=["storage"], responses=serializers.StorageSerializer
    )
    def get(self, request: Request) -> Response:
        Query.read(request)
        company = accounts.is_company_administrator(request.user)
        answer = {
            "teams": selectors.storage_by_team(request.user),
            "store": selectors.store_figures() if company else None,
        }
        return Response(serializers.StorageSerializer(answer).data)


class QuotaView(APIView):
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="Set the quota of a team",
        description="For administrators of the company. What is there already stays.",
        tags=["storage"],
        parameters=[_TEAM],
        request=serializers.QuotaSerializer,
        responses=serializers.TeamStorageSerializer,
    )
    def put(self, request: Request, team: str) -> Response:
        Query.read(request)
        row = get_object_or_404(accounts.teams_of(request.user), uid=team)
        accounts.require(request.user, Permission.MANAGE_TEAM, team=None)
        body = serializers.QuotaSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        services.quota_set(team=row, actor=acting_user(request), **body.validated_data)
        shown = next(one for one in selectors.storage_by_team(request.user) if one.team == row)
        return Response(serializers.TeamStorageSerializer(shown).data)


class RulesListView(APIView):
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="Rules of retention",
        description="The first is for every team without rules of its own.",
        tags=["storage"],
        responses=serializers.TeamRulesSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        Query.read(request)
        own, default = selectors.rules_by_team()
        rows: list[dict[str, Team | RetentionRules | None]] = [{"team": None, "rules": default}]
        rows += [
            {"team": team, "rules": own[team.uid]}
            for team in accounts.teams_of(request.user)
            if team.uid in own
        ]
        return Response(serializers.TeamRulesSerializer(rows, many=True).data)


class RulesView(APIView):
    """``others`` instead of a team's uid stands for every team without rules of its own."""

    token_scope = Scope.ADMIN

    def _team(self, request: Request, uid: str) -> Team | None:
        Query.read(request)
        found = (
            None if uid == "others" else get_object_or_404(accounts.teams_of(request.user), uid=uid)
        )
        accounts.require(request.user, Permission.MANAGE_TEAM, team=found)
        return found

    @extend_schema(
        summary="Set the rules of a team",
        tags=["storage"],
        parameters=[_TEAM],
        request=serializers.RulesSerializer,
        responses=serializers.TeamRulesSerializer,
    )
    def put(self, request: Request, team: str) -> Response:
        row = self._team(request, team)
        body = serializers.RulesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        services.rules_set(team=row, rules=body.to_rules(), actor=acting_user(request))
        answer = {"team": row, "rules": body.to_rules()}
        return Response(serializers.TeamRulesSerializer(answer).data)

    @extend_schema(
        summary="Give a team the rules that all others have",
        tags=["storage"],
        parameters=[_TEAM],
        request=None,
        responses={204: None},
    )
    def delete(self, request: Request, team: str) -> Response:
        row = self._team(request, team)
        services.rules_set(team=row, rules=None, actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class PlanView(APIView):
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="What the next round of retention removes",
        tags=["storage"],
        parameters=[serializers.PlanQuery],
        responses=serializers.PlanSerializer,
    )
    def get(self, request: Request) -> Response:
        uid = serializers.PlanQuery.read(request).get("team")
        found = self._preview(request, uid) if uid else retention_plan(at=timezone.now())
        seen = frozenset(accounts.teams_of(request.user).values_list("uid", flat=True))
        shown = RetentionPlan(
            removals=tuple(one for one in found.removals if one.item.team in seen),
            spared=tuple(item for item in found.spared if item.team in seen),
        )
        return Response(serializers.PlanSerializer(shown).data)

    def _preview(self, request: Request, uid: str) -> RetentionPlan:
        team = get_object_or_404(accounts.teams_of(request.user), uid=uid)
        own, default = selectors.rules_by_team()
        now = own.get(uid, default)
        rules = RetentionRules(
            enabled=True,
            keep_versions=now.keep_versions,
            checkpoint_days=now.checkpoint_days,
            failed_days=now.failed_days,
            log_days=now.log_days,
        )
        return retention_preview(team=team, rules=rules, at=timezone.now())


@extend_schema_view(
    list=extend_schema(
        summary="Past rounds of retention and garbage collection",
        description="For administrators of the company; empty for others.",
        tags=["storage"],
        parameters=[serializers.RunFilters],
    ),
    retrieve=extend_schema(summary="A round", tags=["storage"]),
)
class StorageRunViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[StorageRun]
):
    token_scope = Scope.ADMIN
    serializer_class = serializers.RunSerializer
    queries = {"list": serializers.RunFilters}

    def get_queryset(self) -> QuerySet[StorageRun]:
        return selectors.runs_visible(self.request.user)


@extend_schema_view(
    list=extend_schema(
        summary="What is stored", tags=["storage"], parameters=[serializers.StoredArtifactFilters]
    ),
    retrieve=extend_schema(summary="Something that is stored", tags=["storage"]),
)
class StoredArtifactViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Artifact]
):
    """Artifacts as things that take space."""

    token_scope = Scope.MODELS
    serializer_class = serializers.StoredArtifactSerializer
    queries = {"list": serializers.StoredArtifactFilters}

    def get_queryset(self) -> QuerySet[Artifact]:
        return (
            artifacts_visible(self.request.user)
            .select_related("modelversion__line", "datasetversion__dataset", "team")
            .defer("files", "datasetversion__statistics", "datasetversion__preview")
        )

    def _act(self, act: Callable[[Artifact], None]) -> Response:
        artifact = self.get_object()
        owner = selectors.owner_of(artifact)
        accounts.require(self.request.user, Permission.CONTRIBUTE, team=owner)
        act(artifact)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Delete it",
        description="Refused while something depends on it. It can be had back for 7 days.",
        tags=["storage"],
        responses=serializers.StoredArtifactSerializer,
    )
    def destroy(self, request: Request, uid: str) -> Response:
        actor, at = acting_user(request), timezone.now()
        return self._act(lambda row: services.artifact_delete(artifact=row, actor=actor, at=at))

    @extend_schema(summary="Have a deleted one back", tags=["storage"], request=None)
    @idempotent
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, uid: str) -> Response:
        actor, at = acting_user(request), timezone.now()
        return self._act(lambda row: services.artifact_restore(artifact=row, actor=actor, at=at))

    @extend_schema(
        summary="Remove the bytes of a deleted one for good", tags=["storage"], request=None
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def remove(self, request: Request, uid: str) -> Response:
        actor, at = acting_user(request), timezone.now()
        return self._act(lambda row: services.artifact_remove_now(artifact=row, actor=actor, at=at))

    @extend_schema(summary="Keep it from every rule", tags=["storage"], request=None)
    @idempotent
    @action(detail=True, methods=["post"])
    def pin(self, request: Request, uid: str) -> Response:
        actor, at = acting_user(request), timezone.now()
        return self._act(lambda row: services.artifact_pin(artifact=row, actor=actor, at=at))

    @extend_schema(summary="Let rules have it again", tags=["storage"], request=None)
    @idempotent
    @action(detail=True, methods=["post"])
    def unpin(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        return self._act(lambda row: services.artifact_unpin(artifact=row, actor=actor))
