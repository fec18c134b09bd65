"""The index of the REST API: every collection that the caller may read, and where the documentation is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, QueryDict
from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from controlplane.domain.common.permissions import Scope
from controlplane.web.problem_details import problem_of_exception
from controlplane.web.rest import QuerySerializer

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


class ApiIndexView(APIView):
    """Resources of the API."""

    token_scope = Scope.READ

    @extend_schema(
        summary="Index of the API",
        description="Collections that the caller may read, with their URLs, and the documentation.",
        tags=["operations"],
        operation_id="index_retrieve",
        responses=ApiIndexSerializer,
    )
    def get(self, request: Request) -> Response:
        QuerySerializer.read(request)
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
    for path, _regex, method, callback in EndpointEnumerator().get_api_endpoints():
        if method != "GET" or "{" in path or not path.removeprefix(_PREFIX):
            continue
        view = generator.create_view(callback, method)
        schema = view.schema
        schema.method = method
        if path.startswith(_PREFIX) and not schema.is_excluded() and schema.get_summary():
            yield ApiCollection(
                path=path, title=schema.get_summary(), tag=schema.get_tags()[0], callback=callback
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
