"""The catalog by REST."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.models import selectors as registry
from apps.models.api import catalog_serializers as serializers
from apps.models.selectors import catalog as selectors
from apps.models.selectors.catalog_matrix import matrix
from controlplane.domain.common.permissions import Scope
from controlplane.web.rest import Query

#: Of our versions of an entry, the newest that are named.
_MOST_VERSIONS = 50


class CatalogView(APIView):
    token_scope = Scope.MODELS

    @extend_schema(
        summary="The catalog of models",
        description="All that fit, by title, with the matrix of each. The catalog is small: there are no pages.",
        tags=["catalog"],
        parameters=[serializers.CatalogFilters],
        responses=serializers.CatalogEntrySerializer(many=True),
    )
    def get(self, request: Request) -> HttpResponse:
        given = serializers.CatalogFilters.read(request)
        index = selectors.catalog_index()
        found = index.fitting(
            choice=serializers.CatalogFilters.choice_of(given), text=given.get("q", "")
        )
        documents = serializers.documents_at(index.revision)
        body = b"[%s]" % b",".join(documents[entry.key] for entry in found)
        return HttpResponse(body, content_type="application/json")


class CatalogEntryView(APIView):
    token_scope = Scope.MODELS

    @extend_schema(
        summary="A model of the catalog",
        description="With the matrix over all chips that plug-ins know, the sources, and our versions of it.",
        tags=["catalog"],
        parameters=[OpenApiParameter("key", OpenApiTypes.STR, OpenApiParameter.PATH)],
        responses=serializers.CatalogDetailSerializer,
    )
    def get(self, request: Request, key: str) -> Response:
        Query.read(request)
        found = selectors.catalog_entry(key)
        if found is None:
            raise Http404(f"the catalog has no model called {key!r}")
        entry, withdrawn = found
        known = selectors.sources()
        keys = {*entry.evidence, *(name for cell in entry.cells for name in cell.evidence)}
        versions = registry.model_versions_visible(request.user).filter(catalog_model__key=key)
        answer = {
            **serializers.document_of(entry),
            "withdrawn": withdrawn,
            "matrix": matrix(entry),
            "sources": [known[name] for name in sorted(keys) if name in known],
            "versions": versions[:_MOST_VERSIONS],
        }
        return Response(serializers.CatalogDetailSerializer(answer).data)
