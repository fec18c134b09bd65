from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.fleet import selectors
from apps.fleet.api.serializers import (
    CardFilters,
    CardSerializer,
    ChipSerializer,
    NodeFilters,
    NodeSerializer,
)
from apps.fleet.models import Card, Node
from controlplane.domain.common.permissions import Scope
from controlplane.web.rest import QuerySerializer, ResourceViewSet


@extend_schema_view(
    list=extend_schema(summary="Nodes", tags=["fleet"], parameters=[NodeFilters]),
    retrieve=extend_schema(summary="A node", tags=["fleet"]),
)
class NodeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Node]):
    token_scope = Scope.ADMIN
    serializer_class = NodeSerializer
    queries = {"list": NodeFilters}

    def get_queryset(self) -> QuerySet[Node]:
        return selectors.nodes_with_cluster()


@extend_schema_view(
    list=extend_schema(summary="Cards", tags=["fleet"], parameters=[CardFilters]),
    retrieve=extend_schema(summary="A card", tags=["fleet"]),
)
class CardViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Card]):
    token_scope = Scope.ADMIN
    serializer_class = CardSerializer
    queries = {"list": CardFilters}

    def get_queryset(self) -> QuerySet[Card]:
        return selectors.cards_with_node()


class ChipsView(APIView):
    """The chips that the installed plug-ins know."""

    token_scope = Scope.READ

    @extend_schema(summary="Chips", tags=["fleet"], responses=ChipSerializer(many=True))
    def get(self, request: Request) -> Response:
        QuerySerializer.read(request)
        return Response(ChipSerializer(selectors.fleet_chips(), many=True).data)


class ChipView(APIView):
    """One of them, by its name or another that drivers and labels give it."""

    token_scope = Scope.READ

    @extend_schema(summary="A chip", tags=["fleet"], responses=ChipSerializer)
    def get(self, request: Request, name: str) -> Response:
        QuerySerializer.read(request)
        known = selectors.fleet_chip(name)
        if known is None:
            raise NotFound(f"no plug-in knows a chip called {name!r}")
        return Response(ChipSerializer(known).data)
