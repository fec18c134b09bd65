"""REST API of storage: usage, quotas, retention rules and plans, artifacts and runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import post_action
from apps.accounts.api.serializers import TeamListFilters
from apps.accounts.models import Team
from apps.models.models import Artifact, RetentionRule, StorageRun
from apps.models.selectors import artifacts_visible
from apps.models.selectors import storage as selectors
from apps.models.selectors.storage import artifact_title
from apps.models.services import artifact_storage as services
from apps.models.services.storage_cleanup import (
    RetentionRemovalRecord,
    retention_plan,
    retention_preview,
)
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.domain.storage.team_storage import (
    RetentionPlan,
    RetentionRules,
    StorageKind,
    StorageQuotaLevel,
)
from controlplane.web import rest
from controlplane.web.reasons import ReasonSerializerField
from controlplane.web.type_schemas import DeclaredField

MAX_QUOTA_BYTES = 2**62


class TeamStorageSerializer(serializers.Serializer[Any]):
    team = rest.ObjectReference()
    used = serializers.IntegerField(source="use.used", help_text="Size in bytes.")
    limit = serializers.IntegerField(
        source="use.limit", allow_null=True, help_text="Limit in bytes; null: no limit."
    )
    level = rest.EnumField(StorageQuotaLevel, source="use.level")
    deleted = serializers.IntegerField(
        help_text="Bytes of deleted objects that can be restored; included in `used`."
    )
    by_kind = serializers.SerializerMethodField(help_text="Bytes by kind.")

    def get_by_kind(self, row: Any) -> dict[StorageKind, int]:
        return dict(row.use.by_kind)


class ArtifactStoreUsageSerializer(serializers.Serializer[Any]):
    logical = serializers.IntegerField(help_text="Bytes charged to teams.")
    physical = serializers.IntegerField(
        allow_null=True, help_text="Bytes on disk; equal content is stored once."
    )
    shared = serializers.IntegerField(allow_null=True)
    set_aside = serializers.IntegerField(
        allow_null=True, help_text="Unreferenced bytes that will be deleted."
    )
    blobs = serializers.IntegerField(allow_null=True)
    counted_at = serializers.DateTimeField(allow_null=True)


class StorageUsageSerializer(serializers.Serializer[Any]):
    teams = TeamStorageSerializer(many=True)
    store = ArtifactStoreUsageSerializer(
        allow_null=True, help_text="Only for administrators of the company; null for other users."
    )


class StorageQuotaSerializer(rest.StrictSerializer[Any]):
    limit = serializers.IntegerField(
        min_value=0,
        max_value=MAX_QUOTA_BYTES,
        allow_null=True,
        help_text="Limit in bytes; null: no limit.",
    )


class RetentionRulesSerializer(rest.StrictSerializer[Any]):
    """Null switches a rule off; checkpoints are then deleted after 7 days."""

    enabled = serializers.BooleanField()
    keep_versions = serializers.IntegerField(
        min_value=1,
        max_value=100_000,
        allow_null=True,
        help_text="Number of latest versions of each model that are kept.",
    )
    checkpoint_days = serializers.IntegerField(min_value=0, max_value=3650, allow_null=True)
    failed_days = serializers.IntegerField(min_value=0, max_value=3650, allow_null=True)
    log_days = serializers.IntegerField(min_value=0, max_value=3650, allow_null=True)


class TeamRetentionRulesSerializer(serializers.Serializer[Any]):
    team = rest.ObjectReference(
        allow_null=True, help_text="Team; null: all teams without their own rules."
    )
    rules = RetentionRulesSerializer(source="*")


class RetentionRemovalSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="item.kind")
    uid = serializers.CharField(
        source="item.uid", help_text="Uid of the model version or the attempt."
    )
    name = serializers.CharField(source="item.name")
    team = serializers.CharField(source="item.team", help_text="Slug or uid of the team.")
    size = serializers.IntegerField(source="item.size", help_text="Size in bytes.")
    rule = serializers.CharField()
    reason = ReasonSerializerField()


class RetainedItemSerializer(serializers.Serializer[Any]):
    """What a rule would take, had nothing held it."""

    kind = serializers.CharField()
    uid = serializers.CharField()
    name = serializers.CharField()
    held = serializers.CharField(help_text="What holds it; empty if another version requires it.")
    pinned = serializers.BooleanField()


class RetentionPlanSerializer(serializers.Serializer[Any]):
    size = serializers.IntegerField(help_text="Bytes that would be released.")
    removals = RetentionRemovalSerializer(many=True)
    spared = RetainedItemSerializer(many=True)


class RetentionPlanQuery(rest.QuerySerializer):
    team = serializers.CharField(
        required=False, help_text="Uid of a team, to preview its rules as if they were enabled."
    )


class StorageCleanupRunSerializer(serializers.ModelSerializer[StorageRun]):
    details = DeclaredField(
        declared=lambda: list[RetentionRemovalRecord],
        help_text="What retention removed, at most 50 of a run.",
    )

    class Meta:
        model = StorageRun
        fields = (
            "uid",
            "kind",
            "dry_run",
            "started_at",
            "ended_at",
            "examined",
            "set_aside",
            "removed",
            "removed_bytes",
            "details",
            "error",
        )


class StorageRunFilters(rest.ListFilters):
    lookups = {"kind": "kind"}

    kind = serializers.ChoiceField(choices=StorageRun.KINDS, required=False)


class StoredArtifactSerializer(serializers.ModelSerializer[Artifact]):
    name = serializers.SerializerMethodField()
    team = rest.ObjectReference(
        allow_null=True, help_text="Owning team; null: shared by all teams."
    )

    class Meta:
        model = Artifact
        fields = (
            "uid",
            "name",
            "kind",
            "team",
            "size",
            "created_at",
            "pinned_at",
            "deleted_at",
            "deleted_by",
            "deletion_reason",
            "removed_at",
        )

    def get_name(self, artifact: Artifact) -> str:
        return artifact_title(artifact)


class StoredArtifactFilters(TeamListFilters):
    lookups = {"team": "team", "kind": "kind"}

    kind = serializers.ChoiceField(choices=Artifact.KINDS, required=False)


_TEAM = OpenApiParameter(
    "team", OpenApiTypes.STR, OpenApiParameter.PATH, description="Uid of the team."
)


class StorageUsageView(rest.StrictView):
    tag = "storage"
    token_scope = Scope.ADMIN

    @extend_schema(summary="Storage usage by team", responses=StorageUsageSerializer)
    def get(self, request: Request) -> Response:
        company = accounts.is_company_administrator(request.user)
        answer = {
            "teams": selectors.visible_team_storage(request.user),
            "store": selectors.store_statistics() if company else None,
        }
        return Response(StorageUsageSerializer(answer).data)


class StorageQuotaView(rest.StrictView):
    tag = "storage"
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="Set the quota of a team",
        description="Administrators only. Existing objects are not deleted.",
        parameters=[_TEAM],
        request=StorageQuotaSerializer,
        responses=TeamStorageSerializer,
    )
    @rest.supports_dry_run
    def put(self, request: Request, team: str) -> Response:
        row = get_object_or_404(accounts.teams_visible(request.user), uid=team)
        accounts.require_permission(request.user, Permission.MANAGE_TEAM, team=None)
        given = self.validated_body(StorageQuotaSerializer)
        services.storage_quota_set(team=row, actor=acting_user(request), **given)
        shown = next(one for one in selectors.visible_team_storage(request.user) if one.team == row)
        return Response(TeamStorageSerializer(shown).data)


class RetentionRulesViewSet(rest.ResourceViewSet[RetentionRule]):
    """Rows of teams by name, after the one of all other teams."""

    tag = "storage"
    token_scope = Scope.ADMIN
    pagination_class = None
    watch_key = "rules_of"
    serializer_class = TeamRetentionRulesSerializer

    def get_queryset(self) -> QuerySet[RetentionRule]:
        return selectors.retention_rules_visible(self.request.user)

    @extend_schema(
        summary="Retention rules",
        description="The first item applies to all teams without their own rules. A watch has no event of it "
        "until it is set.",
        responses=TeamRetentionRulesSerializer(many=True),
    )
    def list(self, request: Request) -> Response:
        rows = list(self.get_queryset())
        if not rows or rows[0].team is not None:
            rows.insert(0, RetentionRule())
        return Response(self.get_serializer(rows, many=True).data)


class RetentionRulesView(rest.StrictView):
    """``OTHER_TEAMS`` instead of a team's uid stands for every team without rules of its own."""

    tag = "storage"
    token_scope = Scope.ADMIN

    def _requested_team(self, request: Request, uid: str) -> Team | None:
        found = (
            None
            if uid == selectors.OTHER_TEAMS
            else get_object_or_404(accounts.teams_visible(request.user), uid=uid)
        )
        accounts.require_permission(request.user, Permission.MANAGE_TEAM, team=found)
        return found

    @extend_schema(
        summary="Set the retention rules of a team",
        parameters=[_TEAM],
        request=RetentionRulesSerializer,
        responses=TeamRetentionRulesSerializer,
    )
    @rest.supports_dry_run
    def put(self, request: Request, team: str) -> Response:
        row = self._requested_team(request, team)
        rules = RetentionRules(**self.validated_body(RetentionRulesSerializer))
        services.retention_rules_set(team=row, rules=rules, actor=acting_user(request))
        answer = RetentionRule(team=row, **asdict(rules))
        return Response(TeamRetentionRulesSerializer(answer).data)

    @extend_schema(
        summary="Reset the retention rules of a team to the default",
        parameters=[_TEAM],
        request=None,
        responses={204: None},
    )
    @rest.supports_dry_run
    def delete(self, request: Request, team: str) -> Response:
        row = self._requested_team(request, team)
        services.retention_rules_set(team=row, rules=None, actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class RetentionPlanView(rest.StrictView):
    tag = "storage"
    token_scope = Scope.ADMIN
    queries = {"get": RetentionPlanQuery}

    @extend_schema(
        summary="Objects that the next retention run removes",
        responses=RetentionPlanSerializer,
    )
    def get(self, request: Request) -> Response:
        uid = self.query.get("team")
        found = self._preview_plan(request, uid) if uid else retention_plan(at=timezone.now())
        seen = frozenset(accounts.teams_visible(request.user).values_list("uid", flat=True))
        shown = found.restricted(lambda item: item.team in seen)
        return Response(RetentionPlanSerializer(shown).data)

    def _preview_plan(self, request: Request, uid: str) -> RetentionPlan:
        team = get_object_or_404(accounts.teams_visible(request.user), uid=uid)
        own, default = selectors.retention_rules_by_team()
        rules = replace(own.get(uid, default), enabled=True)
        return retention_preview(team=team, rules=rules, at=timezone.now())


@extend_schema_view(
    list=extend_schema(
        summary="Retention and garbage-collection runs",
        description="Administrators only; empty for other users.",
    )
)
class StorageCleanupRunViewSet(rest.CollectionViewSet[StorageRun]):
    tag = "storage"
    summaries = {"retrieve": "A retention or garbage-collection run"}
    token_scope = Scope.ADMIN
    serializer_class = StorageCleanupRunSerializer
    queries = {"list": StorageRunFilters}
    visible = staticmethod(selectors.storage_runs_visible)


class StoredArtifactViewSet(rest.CollectionViewSet[Artifact]):
    """Artifacts as things that take space."""

    tag = "storage"
    summaries = {"list": "Stored objects", "retrieve": "A stored object"}
    token_scope = Scope.MODELS
    serializer_class = StoredArtifactSerializer
    queries = {"list": StoredArtifactFilters}

    def get_queryset(self) -> QuerySet[Artifact]:
        return (
            artifacts_visible(self.request.user)
            .select_related("modelversion__line", "datasetversion__dataset", "team")
            .defer("files", "datasetversion__statistics", "datasetversion__preview")
        )

    def _apply_action(self, action: Callable[..., None], **options: Any) -> Response:
        artifact = self.get_object()
        owner = selectors.artifact_owner(artifact)
        accounts.require_permission(self.request.user, Permission.CONTRIBUTE, team=owner)
        action(artifact=artifact, actor=acting_user(self.request), **options)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Delete an object",
        description="Refused while another object depends on it. It can be restored for 7 days.",
        responses={200: StoredArtifactSerializer},
    )
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        return self._apply_action(services.artifact_delete, at=timezone.now())

    @post_action("Restore a deleted object")
    def restore(self, request: Request, uid: str) -> Response:
        return self._apply_action(services.artifact_restore, at=timezone.now())

    @post_action("Delete the data of a deleted object permanently")
    def remove(self, request: Request, uid: str) -> Response:
        return self._apply_action(services.artifact_remove_now, at=timezone.now())

    @post_action("Pin an object; retention rules do not remove it")
    def pin(self, request: Request, uid: str) -> Response:
        return self._apply_action(services.artifact_pin, at=timezone.now())

    @post_action("Unpin an object")
    def unpin(self, request: Request, uid: str) -> Response:
        return self._apply_action(services.artifact_unpin)
