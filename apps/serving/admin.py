"""Read-only admin of deployments, routes, keys and usage, with actions to stop deployments and revoke keys."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.accounts.admin import ScopedReadOnlyAdmin, ScopedTransitionAdmin
from apps.serving import models
from apps.serving.services import deployments, gateways
from controlplane.web.admin import shorten_digest


@admin.register(models.Deployment)
class DeploymentAdmin(ScopedReadOnlyAdmin[models.Deployment]):
    team_path = "team"
    list_display = ("name", "state", "state_reason", "team", "replica_count", "created_at")
    list_filter = ("state", "team", ("deleted_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "uid")
    list_select_related = ("team",)
    actions = ("stop",)

    @admin.action(description="Stop the selected deployments", permissions=["operate"])
    def stop(self, request: HttpRequest, rows: QuerySet[models.Deployment]) -> None:
        self.apply_to_each(
            request,
            rows,
            lambda row, actor, at: deployments.deployment_stop(deployment=row, actor=actor, at=at),
            done="is being stopped.",
        )


@admin.register(models.Revision)
class RevisionAdmin(ScopedReadOnlyAdmin[models.Revision]):
    team_path = "deployment__team"
    list_display = ("__str__", "model_version", "engine", "cards", "created_by", "created_at")
    list_filter = ("engine",)
    search_fields = ("deployment__name", "uid")
    list_select_related = ("deployment", "model_version__line", "created_by")


@admin.register(models.RevisionAdapter)
class RevisionAdapterAdmin(ScopedReadOnlyAdmin[models.RevisionAdapter]):
    team_path = "revision__deployment__team"
    list_display = ("name", "revision", "model_version", "rank")
    search_fields = ("name", "revision__deployment__name")
    list_select_related = ("revision__deployment", "model_version__line")


@admin.register(models.AdapterRoute)
class AdapterRouteAdmin(ScopedReadOnlyAdmin[models.AdapterRoute]):
    team_path = "deployment__team"
    list_display = ("name", "deployment", "created_at")
    search_fields = ("name", "uid")
    list_select_related = ("deployment",)


@admin.register(models.Backend)
class BackendAdmin(ScopedReadOnlyAdmin[models.Backend]):
    team_path = "revision__deployment__team"
    list_display = ("__str__", "created_at")
    search_fields = ("revision__deployment__name", "uid")
    list_select_related = ("revision__deployment",)


@admin.register(models.Replica)
class ReplicaAdmin(ScopedReadOnlyAdmin[models.Replica]):
    team_path = "backend__revision__deployment__team"
    list_display = ("__str__", "state", "message", "cluster", "chip", "generation", "crashes")
    list_filter = ("state", "cluster", "chip")
    search_fields = ("uid", "claim_uid", "backend__revision__deployment__name")
    list_select_related = ("backend__revision__deployment", "cluster")


@admin.register(models.WeightDownload)
class WeightDownloadAdmin(ScopedReadOnlyAdmin[models.WeightDownload]):
    team_path = "team"
    list_display = ("__str__", "state", "message", "size", "downloaded", "team", "created_at")
    list_filter = ("state", "team", "node__cluster")
    search_fields = ("uid", "model_version__line__name", "node__name")
    list_select_related = ("team", "model_version__line", "node")


@admin.register(models.Route)
class RouteAdmin(ScopedReadOnlyAdmin[models.Route]):
    team_path = "deployment__team"
    list_display = ("name", "deployment", "created_at")
    search_fields = ("name", "uid")
    list_select_related = ("deployment",)


@admin.register(models.RouteBackend)
class RouteBackendAdmin(ScopedReadOnlyAdmin[models.RouteBackend]):
    team_path = "route__deployment__team"
    list_display = ("route", "backend", "weight")
    search_fields = ("route__name",)
    list_select_related = ("route", "backend__revision__deployment")
    ordering = ("route__name",)


@admin.register(models.ApiKey)
class ApiKeyAdmin(ScopedReadOnlyAdmin[models.ApiKey]):
    team_path = "team"
    list_display = ("name", "prefix", "team", "created_by", "expires_at", "revoked_at")
    list_filter = ("team", ("revoked_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "prefix", "uid")
    list_select_related = ("team", "created_by")
    fields = (
        "uid",
        "team",
        "created_by",
        "name",
        "prefix",
        "digest_shortened",
        "routes",
        "requests_per_minute",
        "tokens_per_minute",
        "concurrency",
        "created_at",
        "expires_at",
        "revoked_at",
    )
    readonly_fields = ("digest_shortened",)
    actions = ("revoke",)

    @admin.display(description="digest")
    def digest_shortened(self, key: models.ApiKey) -> str:
        return shorten_digest(key.digest)

    @admin.action(description="Revoke the selected keys", permissions=["operate"])
    def revoke(self, request: HttpRequest, rows: QuerySet[models.ApiKey]) -> None:
        self.apply_to_each(
            request,
            rows.select_related("team"),
            lambda key, actor, at: gateways.api_key_revoke(key=key, actor=actor, at=at),
            done="was revoked and stops working within moments.",
        )


@admin.register(models.Gateway)
class GatewayAdmin(ScopedReadOnlyAdmin[models.Gateway]):
    list_display = ("name", "last_seen_at", "version")
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(models.GatewaySnapshot)
class GatewaySnapshotAdmin(ScopedReadOnlyAdmin[models.GatewaySnapshot]):
    list_display = ("version", "digest_shortened", "issued_at")
    # The body contains the credentials of engines, so it is never shown.
    fields = ("version", "digest_shortened", "issued_at")
    readonly_fields = ("digest_shortened",)
    search_fields = ("digest",)

    @admin.display(description="digest")
    def digest_shortened(self, snapshot: models.GatewaySnapshot) -> str:
        return shorten_digest(snapshot.digest)


@admin.register(models.UsageBatch)
class UsageBatchAdmin(ScopedReadOnlyAdmin[models.UsageBatch]):
    list_display = ("gateway", "sequence", "received_at")
    list_filter = ("gateway",)
    search_fields = ("gateway",)
    ordering = ("-id",)


@admin.register(models.GatewayCall)
class GatewayCallAdmin(ScopedReadOnlyAdmin[models.GatewayCall]):
    team_path = "team"
    list_display = (
        "at",
        "route",
        "team",
        "key",
        "operation",
        "status",
        "outcome",
        "prompt_tokens",
        "completion_tokens",
    )
    list_filter = ("outcome", "operation", "status", "team")
    search_fields = ("route", "key__name", "key__prefix")
    list_select_related = ("team", "key")
    date_hierarchy = "at"


admin.site.register(models.DeploymentTransition, ScopedTransitionAdmin, team_path="entity__team")
admin.site.register(
    models.ReplicaTransition,
    ScopedTransitionAdmin,
    team_path="entity__backend__revision__deployment__team",
)
admin.site.register(
    models.WeightDownloadTransition, ScopedTransitionAdmin, team_path="entity__team"
)
