from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.serving import selectors
from apps.serving.api import serializers
from apps.serving.models import (
    ApiKey,
    Deployment,
    DeploymentTransition,
    GatewayCall,
    Replica,
    ReplicaTransition,
    WeightDownload,
)
from apps.serving.selectors.revision_configurations import (
    changed_configuration,
    default_configuration,
)
from apps.serving.services import deployments, gateways, rollouts, weight_downloads
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.domain.serving.lifecycle import ReplicaState
from controlplane.web.log_responses import LogSerializer, PlainTextRenderer, decode_chunk
from controlplane.web.problem_details import register_problem
from controlplane.web.rest import (
    CollectionViewSet,
    PartsViewSet,
    ResourceViewSet,
    StrictSerializer,
    supports_dry_run,
)

register_problem(gateways.ApiKeyRefused, code="change-refused", status=409)


class DeploymentViewSet(CollectionViewSet[Deployment]):
    tag = "serving"
    summaries = {"list": "Deployments", "retrieve": "A deployment with its revisions and replicas"}
    token_scope = Scope.SERVING
    queries = {"list": serializers.DeploymentFilters}
    visible = staticmethod(selectors.deployments_visible)
    serializer_class = serializers.DeploymentSerializer
    detail_serializer_class = serializers.DeploymentDetailSerializer

    def _changeable_deployment(self) -> Deployment:
        """The deployment of this address, if the caller may change it."""
        deployment = self.get_object()
        accounts.require_permission(self.request.user, Permission.DEPLOY, team=deployment.team)
        return deployment

    def _deployment_response(self, uid: str) -> Response:
        fresh = self.get_queryset().get(uid=uid)
        return Response(self.get_serializer(fresh).data)

    def _apply(
        self, change: Callable[..., object], body: type[StrictSerializer[Any]] | None = None
    ) -> Response:
        """Call the service with the deployment of this URL and the body, and return the deployment."""
        deployment, actor = self._changeable_deployment(), acting_user(self.request)
        given = self.validated_body(body) if body else {}
        change(deployment=deployment, actor=actor, at=timezone.now(), **given)
        return self._deployment_response(deployment.uid)

    @extend_schema(summary="Deploy a model version", request=serializers.DeploymentCreateSerializer)
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(serializers.DeploymentCreateSerializer)
        accounts.require_permission(request.user, Permission.DEPLOY, team=given["team"])
        configuration = default_configuration(**given.pop("configuration"))
        deployment = deployments.deployment_create(
            actor=acting_user(request), configuration=configuration, **given
        )
        response = self._deployment_response(deployment.uid)
        response.status_code = status.HTTP_201_CREATED
        return response

    @post_action(
        "Add a revision",
        "Omitted fields are those of the newest revision; with other chips and no engine, the engine "
        "is chosen again. Replicas of the revision replace earlier ones in steps of max_surge and "
        "max_unavailable; each gets requests when it is ready. While rollouts are paused, the revision waits.",
        request=serializers.RevisionRequestSerializer,
        dry_run=True,
    )
    def revise(self, request: Request, uid: str) -> Response:
        deployment = self._changeable_deployment()
        changes = self.validated_body(serializers.RevisionRequestSerializer)
        deployments.deployment_revise(
            deployment=deployment,
            configuration=changed_configuration(selectors.newest_revision(deployment), changes),
            actor=acting_user(request),
            at=timezone.now(),
        )
        return self._deployment_response(uid)

    @extend_schema(
        summary="Change the rollout strategy",
        description="Omitted fields are not changed. A rollout in progress continues with the new values.",
        request=serializers.RolloutStrategySerializer,
    )
    @supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        deployment = self._changeable_deployment()
        given = self.validated_body(serializers.RolloutStrategySerializer)
        rollouts.rollout_strategy_set(
            deployment=deployment,
            strategy=replace(deployment.strategy, **given),
            actor=acting_user(request),
        )
        return self._deployment_response(uid)

    @post_action(
        "Pause the rollout of a deployment",
        "No replica of the new revision starts and none of the earlier ones stops until the rollout "
        "is resumed; replicas that are ready get requests. Later revisions wait as well.",
        url_path="rollout/pause",
    )
    def rollout_pause(self, request: Request, uid: str) -> Response:
        return self._apply(rollouts.rollout_pause)

    @post_action(
        "Resume the rollout of a deployment",
        "The progress deadline starts again.",
        url_path="rollout/resume",
    )
    def rollout_resume(self, request: Request, uid: str) -> Response:
        return self._apply(rollouts.rollout_resume)

    @post_action(
        "Return to an earlier revision",
        "While a rollout is in progress, a return to the revision that serves stops the new "
        "replicas. Otherwise a new revision with the earlier configuration is rolled out. Refused (409) while the "
        "rollout is paused.",
        request=serializers.RolloutUndoSerializer,
        url_path="rollout/undo",
    )
    def rollout_undo(self, request: Request, uid: str) -> Response:
        return self._apply(rollouts.rollout_undo, serializers.RolloutUndoSerializer)

    @post_action(
        "Change the number of replicas", request=serializers.DeploymentScaleSerializer, dry_run=True
    )
    def scale(self, request: Request, uid: str) -> Response:
        return self._apply(deployments.deployment_scale, serializers.DeploymentScaleSerializer)

    @post_action("Stop a deployment", "Name, revisions and usage are kept.")
    def stop(self, request: Request, uid: str) -> Response:
        return self._apply(deployments.deployment_stop)

    @post_action("Start a stopped deployment")
    def start(self, request: Request, uid: str) -> Response:
        return self._apply(deployments.deployment_start)

    @extend_schema(
        summary="Delete a deployment",
        description="Frees the name; usage is kept. A stopped deployment is deleted at once (204). The replicas "
        "of a running one first end their requests and stop; it disappears after that (202). A repeated call "
        "changes nothing. Refused (409) while a route has backends of it and of another deployment.",
        responses={202: serializers.DeploymentDetailSerializer, 204: None},
    )
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        deleted = deployments.deployment_delete(
            deployment=self._changeable_deployment(), actor=acting_user(request), at=timezone.now()
        )
        if deleted:
            return Response(status=status.HTTP_204_NO_CONTENT)
        try:
            response = self._deployment_response(uid)
        except Deployment.DoesNotExist:
            # Its last replica has stopped since.
            return Response(status=status.HTTP_204_NO_CONTENT)
        response.status_code = status.HTTP_202_ACCEPTED
        return response


class DeploymentEventViewSet(PartsViewSet[DeploymentTransition]):
    tag = "serving"
    token_scope = Scope.SERVING
    watch_key = "pk"
    append_only = True
    serializer_class = serializers.DeploymentEventSerializer

    def visible_wholes(self) -> QuerySet[Deployment]:
        return selectors.deployments_visible(self.request.user)

    def watched_rows(
        self,
    ) -> tuple[QuerySet[DeploymentTransition], QuerySet[ReplicaTransition]]:
        return selectors.deployment_transitions(self.visible_wholes().filter(uid=self.whole_uid))

    def get_queryset(self) -> QuerySet[DeploymentTransition]:
        """The transitions of the deployment itself."""
        return self.watched_rows()[0]

    @extend_schema(
        summary="State transitions of a deployment and its replicas, latest first",
        responses=serializers.DeploymentEventSerializer(many=True),
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        deployment = self.visible_wholes().get(uid=self.whole_uid)
        found = selectors.deployment_events(deployment)
        return Response(self.get_serializer(found, many=True).data)


class WeightDownloadViewSet(CollectionViewSet[WeightDownload]):
    """Downloads of the weights of model versions into the weight caches of nodes."""

    tag = "serving"
    summaries = {"list": "Weight downloads", "retrieve": "A weight download"}
    token_scope = Scope.SERVING
    serializer_class = serializers.WeightDownloadSerializer
    queries = {"list": serializers.WeightDownloadFilters}
    visible = staticmethod(selectors.weight_downloads_visible)

    @extend_schema(
        summary="Pre-download weights to nodes",
        description="Downloads the weights of the model version into the weight cache of each selected node that "
        "is ready, not cordoned and not isolated. A node that downloads them for the team already is not started "
        "again. Refused (422) if the weights do not fit the cache, or the cluster has none.",
        request=serializers.WeightDownloadCreateSerializer,
        responses={201: serializers.WeightDownloadSerializer(many=True)},
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(serializers.WeightDownloadCreateSerializer)
        accounts.require_permission(request.user, Permission.DEPLOY, team=given["team"])
        rows = weight_downloads.weight_downloads_create(actor=acting_user(request), **given)
        body = self.get_serializer(rows, many=True).data
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Cancel or delete a weight download",
        description="Cancels one that has not ended (202), and deletes one that has (204). Files stay in the "
        "cache of the node until they are evicted.",
        responses={202: serializers.WeightDownloadSerializer, 204: None},
    )
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        accounts.require_permission(request.user, Permission.DEPLOY, team=row.team)
        if weight_downloads.weight_download_delete(
            row=row, actor=acting_user(request), at=timezone.now()
        ):
            return Response(status=status.HTTP_204_NO_CONTENT)
        row.refresh_from_db()
        return Response(self.get_serializer(row).data, status=status.HTTP_202_ACCEPTED)


class ReplicaViewSet(ResourceViewSet[Replica]):
    tag = "serving"
    token_scope = Scope.SERVING
    queries = {"log": serializers.ReplicaLogQuery}
    visible = staticmethod(selectors.replicas_visible)

    @extend_schema(
        summary="Log of the current run of a replica",
        responses={
            (200, "application/json"): LogSerializer,
            (200, "text/plain"): OpenApiTypes.STR,
        },
    )
    @action(detail=True, renderer_classes=[JSONRenderer, PlainTextRenderer])
    def log(self, request: Request, uid: str) -> Response:
        replica = self.get_object()
        offset = self.query["offset"]
        chunk = selectors.replica_log(
            replica, process=self.query["process"], offset=offset, limit=self.query["limit"]
        )
        text, next_offset = decode_chunk(chunk, tail=offset < 0)
        if PlainTextRenderer.is_accepted(request):
            return Response(text, headers={"X-Next-Offset": str(next_offset)})
        complete = chunk.complete and replica.state == ReplicaState.STOPPED
        return Response({"text": text, "next_offset": next_offset, "complete": complete})


class ApiKeyViewSet(CollectionViewSet[ApiKey]):
    """Keys with which programs call a team's deployments through the gateway."""

    tag = "serving"
    summaries = {"list": "Gateway keys", "retrieve": "A gateway key"}
    token_scope = Scope.SERVING
    serializer_class = serializers.ApiKeySerializer
    queries = {"list": serializers.ApiKeyFilters}
    visible = staticmethod(selectors.api_keys_visible)

    @extend_schema(
        summary="Create a gateway key",
        request=serializers.ApiKeyCreateSerializer,
        responses={201: serializers.NewApiKeySerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(serializers.ApiKeyCreateSerializer)
        accounts.require_permission(request.user, Permission.MANAGE_KEYS, team=given["team"])
        key, text = gateways.api_key_create(actor=acting_user(request), at=timezone.now(), **given)
        body = {**serializers.ApiKeySerializer(key).data, "text": text}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a gateway key",
        description="Omitted fields are not changed. Gateways apply the change within a few seconds. A revoked or "
        "expired key cannot be changed (409).",
        request=serializers.ApiKeyChangeSerializer,
    )
    @supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        key = self.get_object()
        accounts.require_permission(request.user, Permission.MANAGE_KEYS, team=key.team)
        given = self.validated_body(serializers.ApiKeyChangeSerializer)
        changed = gateways.api_key_change(
            key=key, actor=acting_user(request), at=timezone.now(), **given
        )
        return Response(self.get_serializer(changed).data)

    @extend_schema(
        summary="Revoke a gateway key",
        description="Requests with the key are refused within a few seconds. Idempotent.",
    )
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        key = self.get_object()
        accounts.require_permission(request.user, Permission.MANAGE_KEYS, team=key.team)
        gateways.api_key_revoke(key=key, actor=acting_user(request), at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class GatewayUsageViewSet(mixins.ListModelMixin, ResourceViewSet[GatewayCall]):
    tag = "serving"
    summaries = {"list": "Requests through the gateway"}
    watchable = False
    token_scope = Scope.SERVING
    serializer_class = serializers.GatewayUsageSerializer
    queries = {"list": serializers.GatewayUsageFilters, "totals": serializers.GatewayUsageFilters}
    visible = staticmethod(selectors.usage_visible)

    @extend_schema(
        summary="Total requests and tokens", responses=serializers.GatewayUsageTotalsSerializer
    )
    @action(detail=False)
    def totals(self, request: Request) -> Response:
        records = serializers.GatewayUsageFilters.apply(self.get_queryset(), self.query)
        return Response(selectors.usage_totals(records))
