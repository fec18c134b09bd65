from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins

from apps.quotas import selectors
from apps.quotas.api.claims import ClaimAnswers
from apps.quotas.api.serializers import ClaimFilters, ClaimSerializer
from apps.quotas.models import Claim
from controlplane.domain.permissions import Scope


@extend_schema_view(
    list=extend_schema(summary="Claims", tags=["scheduling"], parameters=[ClaimFilters]),
    retrieve=extend_schema(summary="A claim", tags=["scheduling"]),
)
class ClaimViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ClaimAnswers):
    """What the caller's teams ask of the scheduler, and what they hold."""

    token_scope = Scope.JOBS
    serializer_class = ClaimSerializer
    queries = {"list": ClaimFilters}

    def get_queryset(self) -> QuerySet[Claim]:
        return selectors.claims_visible(self.request.user)
