"""REST of users."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers

from apps.accounts import selectors
from apps.accounts.models import User
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.web.rest import ListFilters, ResourceViewSet


class UserSerializer(serializers.ModelSerializer[User]):
    active = serializers.BooleanField(source="is_active")
    administrator = serializers.BooleanField(source="is_superuser")

    class Meta:
        model = User
        fields = ("uid", "username", "email", "active", "administrator")


class UserFilters(ListFilters):
    lookups = {"username": "username"}

    username = serializers.CharField(required=False, help_text="Exact username.")


@extend_schema_view(
    list=extend_schema(
        summary="Users",
        description="For administrators of the company.",
        tags=["accounts"],
        parameters=[UserFilters],
    ),
    retrieve=extend_schema(
        summary="A user", description="For administrators of the company.", tags=["accounts"]
    ),
)
class UserViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[User]):
    token_scope = Scope.ADMIN
    serializer_class = UserSerializer
    queries = {"list": UserFilters}

    def get_queryset(self) -> QuerySet[User]:
        selectors.require_permission(self.request.user, Permission.MANAGE_TEAM, team=None)
        return selectors.users_visible(self.request.user).order_by("-id")
