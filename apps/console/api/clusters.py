"""REST of clusters. Before removing or relocating one, the apps above ``fleet`` are asked for workloads on it."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.accounts.selectors import has_company_permission
from apps.fleet import selectors
from apps.fleet.api.serializers import (
    ClusterChangeSerializer,
    ClusterCreateSerializer,
    ClusterDetailSerializer,
    ClusterSerializer,
)
from apps.fleet.models import Cluster
from apps.fleet.services import clusters
from apps.fleet.services.clusters import (
    ClusterChecksFailed,
    ClusterHasIsolatedNodes,
    ClusterInUse,
    ClusterRefused,
)
from apps.serving.selectors import workloads_using_cluster
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.web.problem_details import ProblemDetails, problem_translator, register_problem
from controlplane.web.rest import (
    ResourceViewSet,
    supports_dry_run,
)


@extend_schema_view(
    list=extend_schema(summary="Clusters", tags=["fleet"]),
)
class ClusterViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Cluster]):
    """Where work runs. Everybody who is logged in may see the fleet."""

    token_scope = Scope.ADMIN
    serializer_class = ClusterSerializer

    def get_queryset(self) -> QuerySet[Cluster]:
        return selectors.clusters_with_counts()

    @extend_schema(
        summary="A cluster",
        description="With its options and connection checks for operators of the fleet.",
        tags=["fleet"],
        responses={
            (200, "application/json"): {
                # Not oneOf: a detail is a cluster too.
                "anyOf": [
                    {"$ref": "#/components/schemas/ClusterDetail"},
                    {"$ref": "#/components/schemas/Cluster"},
                ]
            }
        },
    )
    def retrieve(self, request: Request, uid: str) -> Response:
        cluster = self.get_object()
        if has_company_permission(request.user, Permission.OPERATE_FLEET):
            return Response(self._cluster_detail(cluster))
        return Response(self.get_serializer(cluster).data)

    @extend_schema(
        summary="Register a cluster",
        description="The connection is checked first. The kubeconfig must contain its credentials "
        "inline; exec plug-ins and file paths are refused. For operators.",
        tags=["fleet"],
        request=ClusterCreateSerializer,
        responses={201: ClusterDetailSerializer},
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        values = self.validated_body(ClusterCreateSerializer)
        cluster = clusters.cluster_register(actor=acting_user(request), at=timezone.now(), **values)
        return Response(self._cluster_detail(cluster), status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a cluster",
        description="The connection is checked first. For operators.",
        tags=["fleet"],
        request=ClusterChangeSerializer,
        responses=ClusterDetailSerializer,
    )
    @supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        cluster, actor = self.get_object(), acting_user(request)
        values = self.validated_body(ClusterChangeSerializer)
        clusters.cluster_change(
            cluster=cluster,
            workloads_using=workloads_using_cluster,
            actor=actor,
            at=timezone.now(),
            **values,
        )
        return Response(self._cluster_detail(cluster))

    @extend_schema(
        summary="Remove a cluster",
        description=(
            "Refused while workloads use cards of the cluster or its nodes are isolated. "
            "Objects on the cluster are not deleted."
        ),
        tags=["fleet"],
        responses={204: None},
    )
    def destroy(self, request: Request, uid: str) -> Response:
        cluster, actor = self.get_object(), acting_user(request)
        clusters.cluster_remove(
            cluster=cluster, workloads_using=workloads_using_cluster, actor=actor, at=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Check the connection to a cluster",
        tags=["fleet"],
        request=None,
        responses=ClusterDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def check(self, request: Request, uid: str) -> Response:
        cluster, actor = self.get_object(), acting_user(request)
        clusters.cluster_check(cluster=cluster, actor=actor, at=timezone.now())
        return Response(self._cluster_detail(cluster))

    def _cluster_detail(self, cluster: Cluster) -> dict[str, Any]:
        counted = self.get_queryset().get(pk=cluster.pk)
        return dict(ClusterDetailSerializer(counted, context=self.get_serializer_context()).data)


register_problem(ClusterRefused, code="cluster-refused")


@problem_translator(ClusterChecksFailed)
def _cluster_checks_failed_problem(error: ClusterChecksFailed) -> ProblemDetails:
    errors = [
        {"field": f"checks.{check.name}", "message": f"{check.message} {check.remedy}".strip()}
        for check in error.failed
    ]
    return ProblemDetails(status=422, code="cluster-unfit", detail=str(error), errors=errors)


@problem_translator(ClusterInUse)
def _cluster_in_use_problem(error: ClusterInUse) -> ProblemDetails:
    return ProblemDetails(
        status=409,
        code="cluster-occupied",
        detail=str(error),
        extensions={"occupants": list(error.occupants)},
    )


@problem_translator(ClusterHasIsolatedNodes)
def _isolated_nodes_problem(error: ClusterHasIsolatedNodes) -> ProblemDetails:
    return ProblemDetails(
        status=409,
        code="cluster-marked",
        detail=str(error),
        extensions={"nodes": list(error.nodes)},
    )
