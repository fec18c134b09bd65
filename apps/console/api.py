"""REST that reads across the apps: the index, clusters and the system status.

The index lists every collection that the caller may read, and where the documentation is. Before a cluster is
removed or relocated, the apps above ``fleet`` are asked for workloads on it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, QueryDict
from django.urls import include, path
from django.utils import timezone
from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import exceptions, serializers, status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.accounts.selectors import has_company_permission
from apps.console.selectors.system_status import (
    COMPONENT_FACTS,
    ComponentCondition,
    ComponentKind,
    ProductComponent,
    ProductStatus,
    product_status,
    require_permission_to_view_product_status,
)
from apps.fleet import selectors
from apps.fleet.api import (
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
from apps.monitoring.selectors.self_monitoring import ControllerStatus
from apps.serving.selectors import workloads_using_cluster
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.domain.health.controllers import ControllerHealth
from controlplane.web.problem_details import (
    ProblemDetails,
    problem_of_exception,
    problem_translator,
    register_problem,
)
from controlplane.web.rest import (
    CollectionViewSet,
    StrictView,
    supports_dry_run,
)
from controlplane.web.type_schemas import DeclaredByKindField

_PREFIX = "/api/v1/"
_REFUSALS = frozenset({401, 403, 404})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCollection:
    """A URL without parameters that answers to GET."""

    path: str
    title: str
    tag: str
    callback: Callable[..., Any]


class ApiResourceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Path below /api/v1, for example jobs.")
    title = serializers.CharField()
    tag = serializers.CharField(help_text="Tag of its operations in the OpenAPI document.")
    url = serializers.URLField()


class ApiIndexSerializer(serializers.Serializer[Any]):
    title = serializers.CharField()
    version = serializers.CharField(help_text="Version of the API.")
    openapi_url = serializers.URLField(help_text="OpenAPI document; JSON if Accept prefers it.")
    docs_url = serializers.URLField(help_text="Documentation of all operations.")
    problem_types_url = serializers.URLField(help_text="Meaning of the codes of errors.")
    resources = ApiResourceSerializer(many=True, help_text="Collections that you may read.")


class ApiIndexView(StrictView):
    """Resources of the API."""

    tag = "operations"
    token_scope = Scope.READ

    @extend_schema(
        summary="Index of the API",
        description="Collections that the caller may read, with their URLs, and the documentation.",
        operation_id="index_retrieve",
        responses=ApiIndexSerializer,
    )
    def get(self, request: Request) -> Response:
        answer = {
            "title": spectacular_settings.TITLE,
            "version": spectacular_settings.VERSION,
            "openapi_url": reverse("schema", request=request),
            "docs_url": reverse("docs", request=request),
            "problem_types_url": reverse("problem-types", request=request),
            "resources": [
                {
                    "name": collection.path.removeprefix(_PREFIX),
                    "title": collection.title,
                    "tag": collection.tag,
                    "url": request.build_absolute_uri(collection.path),
                }
                for collection in api_collections()
                if _may_read(collection, request)
            ],
        }
        return Response(ApiIndexSerializer(answer).data)


@cache
def api_collections() -> tuple[ApiCollection, ...]:
    """The collections that the OpenAPI document describes, by path."""
    return tuple(sorted(_described_collections(), key=lambda each: each.path))


def _described_collections() -> Iterator[ApiCollection]:
    generator = SchemaGenerator()
    for address, _regex, method, callback in EndpointEnumerator().get_api_endpoints():
        if method != "GET" or "{" in address or not address.removeprefix(_PREFIX):
            continue
        view = generator.create_view(callback, method)
        schema = view.schema
        schema.method = method
        if address.startswith(_PREFIX) and not schema.is_excluded() and schema.get_summary():
            yield ApiCollection(
                path=address,
                title=schema.get_summary(),
                tag=schema.get_tags()[0],
                callback=callback,
            )


def _may_read(collection: ApiCollection, request: Request) -> bool:
    """Whether the view would answer the caller: its own checks run, and no row is read."""
    callback: Any = collection.callback
    view: APIView = callback.cls(**callback.initkwargs)
    http = copy.copy(request._request)
    http.GET = QueryDict()
    inner = Request(http)
    inner.user, inner.auth = request.user, request.auth
    view.request, view.args, view.kwargs, view.format_kwarg = inner, (), {}, None
    view.headers = {}
    # A request for the index counts as one request.
    view.throttle_classes = ()
    actions = getattr(callback, "actions", None)
    if actions:
        view.action_map, view.action = actions, actions["get"]  # type: ignore[attr-defined] # of view sets
    try:
        view.initial(inner)
        if isinstance(view, GenericAPIView):
            view.get_queryset()
    except exceptions.ValidationError:
        return True  # A parameter is required.
    except (exceptions.APIException, PermissionDenied, Http404):
        return False
    except Exception as error:
        problem = problem_of_exception(error)
        if problem is None or problem.status not in _REFUSALS:
            raise
        return False
    return True


class ClusterViewSet(CollectionViewSet[Cluster]):
    """Where work runs. Everybody who is logged in may see the fleet."""

    tag = "fleet"
    summaries = {"list": "Clusters"}
    token_scope = Scope.ADMIN
    serializer_class = ClusterSerializer
    visible = staticmethod(lambda _user: selectors.clusters_with_counts())

    @extend_schema(
        summary="A cluster",
        description="With its options and connection checks for operators of the fleet.",
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
        description="Refused while workloads use cards of the cluster or its nodes are isolated. "
        "Objects on the cluster are not deleted.",
    )
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        cluster, actor = self.get_object(), acting_user(request)
        clusters.cluster_remove(
            cluster=cluster, workloads_using=workloads_using_cluster, actor=actor, at=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    @post_action("Check the connection to a cluster", responses=ClusterDetailSerializer)
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


register_problem(
    ClusterInUse,
    code="cluster-occupied",
    status=409,
    extensions=lambda error: {"occupants": list(error.occupants)},
)
register_problem(
    ClusterHasIsolatedNodes,
    code="cluster-marked",
    status=409,
    extensions=lambda error: {"nodes": list(error.nodes)},
)


KINDS = [(one.value, one.value) for one in ComponentKind]
CONDITIONS = [(one.value, one.value) for one in ComponentCondition]
HEALTHS = [(one.value, one.value) for one in ControllerHealth]


class ProductComponentSerializer(serializers.Serializer[ProductComponent]):
    """A part of the product."""

    kind = serializers.ChoiceField(choices=KINDS)
    name = serializers.CharField(help_text="Name of the instance if there are several; else empty.")
    condition = serializers.ChoiceField(choices=CONDITIONS)
    facts = DeclaredByKindField(
        declared=lambda: COMPONENT_FACTS, help_text="Measured facts of components of the kind."
    )


class ControllerSerializer(serializers.Serializer[ControllerStatus]):
    """A controller and the record of its runs."""

    name = serializers.CharField()
    health = serializers.ChoiceField(choices=HEALTHS)
    interval_seconds = serializers.SerializerMethodField()
    lag_seconds = serializers.SerializerMethodField(
        help_text="Seconds since the last successful run; null if it has never run."
    )
    last_seconds = serializers.FloatField(allow_null=True, help_text="Duration of the last run.")
    handled = serializers.IntegerField(
        allow_null=True,
        help_text="What the last successful run handled; null if it does not report a number.",
    )
    runs = serializers.IntegerField()
    failed_runs = serializers.IntegerField()
    failures = serializers.IntegerField(help_text="Failed runs since the last successful one.")
    error = serializers.CharField(help_text="Error of the last failed run.")
    failed_at = serializers.DateTimeField(allow_null=True)

    def get_interval_seconds(self, controller: ControllerStatus) -> float:
        return controller.interval.total_seconds()

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_lag_seconds(self, controller: ControllerStatus) -> float | None:
        return None if controller.lag is None else controller.lag.total_seconds()


class StatusSerializer(serializers.Serializer[ProductStatus]):
    """State of Ninefold itself; the condition is that of the worst component."""

    at = serializers.DateTimeField()
    condition = serializers.ChoiceField(choices=CONDITIONS)
    components = ProductComponentSerializer(many=True)
    controllers = ControllerSerializer(many=True)
    versions: Any = serializers.DictField(child=serializers.CharField())


class StatusView(StrictView):
    """For operators and administrators."""

    tag = "operations"
    token_scope = Scope.READ

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """:raises PermissionRefused: unless the caller may view the status of the product."""
        super().initial(request, *args, **kwargs)
        require_permission_to_view_product_status(request.user)

    @extend_schema(
        summary="System status", operation_id="status_retrieve", responses=StatusSerializer
    )
    def get(self, request: Request) -> Response:
        return Response(StatusSerializer(product_status()).data)


router = SimpleRouter(trailing_slash=False)
router.register("clusters", ClusterViewSet, basename="cluster")

urlpatterns = [
    path("", ApiIndexView.as_view(), name="api-index"),
    path("status", StatusView.as_view(), name="api-status"),
    path("", include(router.urls)),
]
