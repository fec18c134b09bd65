from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts import selectors, services
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.accounts.api.serializers import (
    MeSerializer,
    NewTokenSerializer,
    TeamSerializer,
    TokenCreateSerializer,
    TokenSerializer,
)
from apps.accounts.models import PersonalToken, Team
from controlplane.web.rest import Query, ResourceViewSet


class MeView(APIView):
    """Who the caller is."""

    @extend_schema(summary="Who I am and what I may do", tags=["accounts"], responses=MeSerializer)
    def get(self, request: Request) -> Response:
        Query.read(request)
        user = acting_user(request)
        context = {"roles": selectors.roles_by_team(user)}
        teams = TeamSerializer(selectors.teams_of(user), many=True, context=context).data
        return Response(
            {
                "uid": user.uid,
                "username": user.username,
                "email": user.email,
                "administrator": user.is_superuser,
                "teams": teams,
            }
        )


@extend_schema_view(
    list=extend_schema(summary="My teams", tags=["accounts"]),
    retrieve=extend_schema(summary="A team", tags=["accounts"]),
)
class TeamViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Team]):
    """Teams whose things the caller may see."""

    serializer_class = TeamSerializer

    def get_queryset(self) -> QuerySet[Team]:
        return selectors.teams_of(self.request.user)

    def get_serializer_context(self) -> dict[str, Any]:
        roles = selectors.roles_by_team(self.request.user)
        return {**super().get_serializer_context(), "roles": roles}


@extend_schema_view(
    list=extend_schema(summary="My personal tokens", tags=["accounts"]),
)
class TokenViewSet(mixins.ListModelMixin, ResourceViewSet[PersonalToken]):
    """Tokens with which programs act as the caller."""

    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[PersonalToken]:
        return selectors.tokens_of(self.request.user)

    @extend_schema(
        summary="Make a personal token",
        tags=["accounts"],
        request=TokenCreateSerializer,
        responses={201: NewTokenSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        token, text = services.token_create(
            user=acting_user(request), **self.checked(TokenCreateSerializer)
        )
        body = {**TokenSerializer(token).data, "text": text}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Revoke a personal token",
        description="It stops working at once. Revoking it again changes nothing.",
        tags=["accounts"],
        responses={204: None},
    )
    def destroy(self, request: Request, uid: str) -> Response:
        services.token_revoke(token=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
