"""REST of routes: the public model names, and how their requests are divided."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.serializers import TeamListFilters
from apps.serving import selectors
from apps.serving.models import Backend, Deployment, Route, RouteBackend
from apps.serving.services.routes import MAX_WEIGHT, route_weights_set
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.web import rest


class RouteBackendSerializer(serializers.Serializer[RouteBackend]):
    deployment = rest.ObjectReference(source="backend.revision.deployment")
    revision = serializers.IntegerField(source="backend.revision.number")
    weight = serializers.IntegerField(help_text="Share of the requests, relative to the others.")


class RouteSerializer(serializers.ModelSerializer[Route]):
    team = rest.ObjectReference(source="deployment.team")
    deployment = rest.ObjectReference(help_text="The deployment that it was created with.")
    backends = serializers.SerializerMethodField()

    class Meta:
        model = Route
        fields = ("uid", "name", "team", "deployment", "backends")

    @extend_schema_field(RouteBackendSerializer(many=True))
    def get_backends(self, route: Route) -> list[dict[str, Any]]:
        return [dict(RouteBackendSerializer(row).data) for row in route.weights.all()]


class RouteBackendWriteSerializer(rest.StrictSerializer[Any]):
    deployment = rest.VisibleUidField(
        visible=selectors.deployments_visible, help_text="Name or uid of a deployment of the team."
    )
    weight = serializers.IntegerField(
        min_value=0, max_value=MAX_WEIGHT, help_text="0: no requests."
    )


class RouteChangeSerializer(rest.StrictSerializer[Any]):
    backends = serializers.ListField(
        child=RouteBackendWriteSerializer(),
        min_length=1,
        max_length=100,
        help_text="All backends; a deployment that is left out is removed from the route.",
    )


class RouteFilters(TeamListFilters):
    lookups = {"team": "deployment__team", "name": "name"}

    name = serializers.CharField(required=False, help_text="Exact name.")


class RouteViewSet(rest.CollectionViewSet[Route]):
    tag = "serving"
    summaries = {"list": "Routes", "retrieve": "A route with its backends"}
    token_scope = Scope.SERVING
    serializer_class = RouteSerializer
    queries = {"list": RouteFilters}

    def get_queryset(self) -> QuerySet[Route]:
        weights = RouteBackend.objects.order_by("id").select_related(
            "backend__revision__deployment"
        )
        return (
            Route.objects.filter(
                deployment__team__in=accounts.teams_visible(self.request.user),
                deployment__deleted_at=None,
            )
            .select_related("deployment__team")
            .prefetch_related(Prefetch("weights", queryset=weights))
            .order_by("-id")
        )

    @extend_schema(
        summary="Set the backends of a route and their weights",
        description="Each deployment serves its newest revision, or the one that the route has already. The "
        "deployment that the route was created with stays, if only with weight 0.",
        request=RouteChangeSerializer,
    )
    @rest.supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        route = self.get_object()
        accounts.require_permission(request.user, Permission.DEPLOY, team=route.deployment.team)
        given = self.validated_body(RouteChangeSerializer)["backends"]
        current = {row.backend.revision.deployment_id: row.backend for row in route.weights.all()}
        weights: dict[Backend, int] = {}
        for one in given:
            deployment: Deployment = one["deployment"]
            backend = current.get(deployment.pk) or _newest_backend(deployment)
            if backend in weights:
                raise serializers.ValidationError(
                    {"backends": [f"{deployment.name} is given twice; give each deployment once"]}
                )
            weights[backend] = one["weight"]
        named = {one["deployment"].pk for one in given}
        removed = Deployment.objects.filter(pk__in=current.keys() - named)
        route_weights_set(
            route=route, weights=weights, remove=list(removed), actor=acting_user(request)
        )
        return Response(self.get_serializer(self.get_object()).data)


def _newest_backend(deployment: Deployment) -> Backend:
    return selectors.newest_revision(deployment).backends.all()[0]
