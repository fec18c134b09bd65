"""REST of users."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors, services
from apps.accounts.api import serializers
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.accounts.models import AuditEntry, PersonalToken, Team, User
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.web import rest

_USER_PARAMETER = OpenApiParameter(
    name="user_uid", type=str, location=OpenApiParameter.PATH, description="Uid of the user."
)


class CurrentUserView(rest.StrictView):
    """Who the caller is."""

    tag = "accounts"
    token_scope = Scope.ALL

    @extend_schema(
        summary="My account, roles and permissions", responses=serializers.CurrentUserSerializer
    )
    def get(self, request: Request) -> Response:
        user = acting_user(request)
        context = {"roles": selectors.roles_by_team(user)}
        teams = serializers.TeamSerializer(
            selectors.teams_visible(user), many=True, context=context
        ).data
        return Response(
            {
                "uid": user.uid,
                "username": user.username,
                "email": user.email,
                "administrator": selectors.is_company_administrator(user),
                "company_roles": sorted(selectors.company_roles_of(user)),
                "teams": teams,
            }
        )


class TeamViewSet(rest.CollectionViewSet[Team]):
    """Teams whose things the caller may see."""

    tag = "accounts"
    summaries = {"list": "My teams", "retrieve": "A team"}
    token_scope = Scope.ADMIN
    serializer_class = serializers.TeamSerializer
    visible = staticmethod(selectors.teams_visible)

    def get_serializer_context(self) -> dict[str, Any]:
        roles = selectors.roles_by_team(self.request.user)
        return {**super().get_serializer_context(), "roles": roles}

    @extend_schema(
        summary="Create a team",
        description="For administrators of the company.",
        request=serializers.TeamCreateSerializer,
    )
    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        values = self.validated_body(serializers.TeamCreateSerializer)
        created = services.team_create(actor=acting_user(request), **values)
        body = serializers.TeamSerializer(created, context=self.get_serializer_context()).data
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Rename a team",
        description="For administrators of the company. The slug and with it all links stay.",
        request=serializers.TeamChangeSerializer,
    )
    @rest.supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        team = self.get_object()
        values = self.validated_body(serializers.TeamChangeSerializer)
        services.team_rename(team=team, name=values["name"], actor=acting_user(request))
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        methods=["PUT"],
        summary="Set the roles of a member",
        description="Adds the user to the team if necessary. Requires the permission to manage the "
        "team.",
        tags=["accounts"],
        parameters=[_USER_PARAMETER],
        request=serializers.TeamMemberRolesSerializer,
        responses=serializers.MemberSerializer,
    )
    @extend_schema(
        methods=["DELETE"],
        summary="Remove a member from a team",
        tags=["accounts"],
        parameters=[_USER_PARAMETER],
        responses={204: None},
    )
    @rest.supports_dry_run
    @action(detail=True, methods=["put", "delete"], url_path=f"members/(?P<user_uid>{rest.UID})")
    def member(self, request: Request, uid: str, user_uid: str) -> Response:
        team, actor = self.get_object(), acting_user(request)
        selectors.require_permission(actor, Permission.MANAGE_TEAM, team=team)
        if request.method == "DELETE":
            user = get_object_or_404(
                User.objects.filter(memberships__team=team).distinct(), uid=user_uid
            )
            services.membership_set(team=team, user=user, roles=frozenset(), actor=actor)
            return Response(status=status.HTTP_204_NO_CONTENT)
        user = get_object_or_404(User, uid=user_uid, is_active=True)
        roles = self.validated_body(serializers.TeamMemberRolesSerializer)["roles"]
        services.membership_set(team=team, user=user, roles=roles, actor=actor)
        shown = selectors.team_members(Team.objects.filter(pk=team.pk)).get(pk=user.pk)
        return Response(serializers.MemberSerializer(shown).data)


class TeamMemberViewSet(rest.PartsViewSet[User]):
    tag = "accounts"
    summaries = {"list": "Members of a team"}
    token_scope = Scope.ADMIN
    serializer_class = serializers.MemberSerializer

    def visible_wholes(self) -> QuerySet[Team]:
        return selectors.teams_visible(self.request.user)

    def get_queryset(self) -> QuerySet[User]:
        return selectors.team_members(self.visible_wholes().filter(uid=self.whole_uid))


@extend_schema_view(
    list=extend_schema(
        summary="People with a company role", description="For administrators of the company."
    )
)
class CompanyRolesViewSet(mixins.ListModelMixin, rest.ResourceViewSet[User]):
    """Roles in the whole company, such as operator of the fleet."""

    tag = "accounts"
    token_scope = Scope.ADMIN
    serializer_class = serializers.CompanyRolesSerializer

    def get_queryset(self) -> QuerySet[User]:
        selectors.require_permission(self.request.user, Permission.MANAGE_TEAM, team=None)
        users = selectors.users_visible(self.request.user)
        if self.action == "list":
            users = users.exclude(company_role_bindings=None).distinct()
        return users.prefetch_related("company_role_bindings")

    @extend_schema(
        summary="Set the company roles of a user",
        description="For administrators of the company. An empty list revokes every company role.",
        request=serializers.CompanyRolesSetSerializer,
    )
    @rest.supports_dry_run
    def update(self, request: Request, uid: str) -> Response:
        user = self.get_object()
        roles = self.validated_body(serializers.CompanyRolesSetSerializer)["roles"]
        services.company_roles_set(user=user, roles=roles, actor=acting_user(request))
        return Response(serializers.CompanyRolesSerializer(self.get_object()).data)


@extend_schema_view(
    list=extend_schema(
        summary="Audit log",
        description="Newest first. Administrators of a team see its events, administrators of the "
        "company all events, other users none.",
    )
)
class AuditViewSet(mixins.ListModelMixin, rest.ResourceViewSet[AuditEntry]):
    """The audit trail. Nothing here can be changed."""

    tag = "accounts"
    watch_key = "pk"
    append_only = True
    token_scope = Scope.ADMIN
    serializer_class = serializers.AuditSerializer
    queries = {"list": serializers.AuditFilters}
    visible = staticmethod(selectors.audit_entries_visible)


class TokenViewSet(rest.CollectionViewSet[PersonalToken]):
    """Tokens with which programs act as the caller."""

    tag = "accounts"
    summaries = {"list": "My personal tokens", "retrieve": "A personal token"}
    #: A token that could make others would have no scope at all.
    token_scope = Scope.ALL
    serializer_class = serializers.TokenSerializer
    visible = staticmethod(selectors.personal_tokens_visible)

    @extend_schema(
        summary="Create a personal token",
        request=serializers.TokenCreateSerializer,
        responses={201: serializers.NewTokenSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        token, text = services.token_create(
            user=acting_user(request), **self.validated_body(serializers.TokenCreateSerializer)
        )
        body = {**serializers.TokenSerializer(token).data, "text": text}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Rename a personal token",
        description="Scopes, team and expiry cannot be changed; create another token instead.",
        request=serializers.TokenChangeSerializer,
    )
    def partial_update(self, request: Request, uid: str) -> Response:
        token = self.get_object()
        given = self.validated_body(serializers.TokenChangeSerializer)
        if given:
            token = services.token_rename(token=token, actor=acting_user(request), **given)
        return Response(serializers.TokenSerializer(token).data)

    @extend_schema(
        summary="Revoke a personal token", description="Takes effect immediately. Idempotent."
    )
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        services.token_revoke(token=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(
    list=extend_schema(summary="Users", description="For administrators of the company."),
    retrieve=extend_schema(summary="A user", description="For administrators of the company."),
)
class UserViewSet(rest.CollectionViewSet[User]):
    tag = "accounts"
    token_scope = Scope.ADMIN
    serializer_class = serializers.UserSerializer
    queries = {"list": serializers.UserFilters}

    def get_queryset(self) -> QuerySet[User]:
        selectors.require_permission(self.request.user, Permission.MANAGE_TEAM, team=None)
        return selectors.users_visible(self.request.user).order_by("-id")
