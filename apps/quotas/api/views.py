from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins

from apps.quotas import selectors
from apps.quotas.api.serializers import ClaimFilters, ClaimSerializer, QueueSerializer
from apps.quotas.models import Claim, Queue
from controlplane.domain.permissions import Scope
from controlplane.web.rest import ResourceViewSet


@extend_schema_view(
    list=extend_schema(summary="Queues", tags=["scheduling"]),
    retrieve=extend_schema(summary="A queue", tags=["scheduling"]),
)
class QueueViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Queue]):
    """Queues that the caller's teams may submit to."""

    token_scope = Scope.ADMIN
    serializer_class = QueueSerializer

    def get_queryset(self) -> QuerySet[Queue]:
        return selectors.queues_visible(self.request.user)


@extend_schema_view(
    list=extend_schema(summary="Claims", tags=["scheduling"], parameters=[ClaimFilters]),
    retrieve=extend_schema(summary="A claim", tags=["scheduling"]),
)
class ClaimViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Claim]):
    """What the caller's teams ask of the scheduler, and what they hold."""

    token_scope = Scope.ADMIN
    serializer_class = ClaimSerializer
    queries = {"list": ClaimFilters}

    def get_queryset(self) -> QuerySet[Claim]:
        return selectors.claims_visible(self.request.user)
