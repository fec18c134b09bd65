from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from apps.accounts import selectors
from apps.accounts.models import (
    AuditEntry,
    CompanyRoleBinding,
    Membership,
    PersonalToken,
    Team,
    User,
)
from controlplane.domain.common.permissions import CompanyRole, Scope, TeamRole
from controlplane.domain.common.reasons import Reason
from controlplane.web.references import ReferenceNaming, register_reference_naming
from controlplane.web.rest import ListFilters, StrictSerializer, VisibleUidField

register_reference_naming(
    Team,
    ReferenceNaming(noun=Reason("reference.noun.team", "team"), name="slug", example="vision"),
)


class TeamSerializer(serializers.ModelSerializer[Team]):
    #: The caller's own.
    roles = serializers.SerializerMethodField()

    class Meta:
        model = Team
        fields = ("uid", "slug", "name", "roles", "created_at")

    def get_roles(self, team: Team) -> list[TeamRole]:
        return sorted(self.context["roles"].get(team.pk, ()))


class CurrentUserSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    username = serializers.CharField()
    email = serializers.CharField()
    administrator = serializers.BooleanField(
        help_text="Whether the user is an administrator of the company, with all permissions in "
        "all teams."
    )
    company_roles = serializers.ListField(
        child=serializers.ChoiceField(choices=CompanyRoleBinding.ROLES),
        help_text="Company roles; empty for a token that is limited to one team.",
    )
    teams = TeamSerializer(many=True)


class MemberSerializer(serializers.Serializer[User]):
    """Somebody in a team, with ``memberships_in_team``."""

    uid = serializers.CharField()
    username = serializers.CharField()
    roles = serializers.SerializerMethodField()
    roles_by_sign_on = serializers.SerializerMethodField(
        help_text="The subset that comes from groups of the sign-on provider."
    )

    @extend_schema_field(
        serializers.ListField(child=serializers.ChoiceField(choices=Membership.ROLES))
    )
    def get_roles(self, user: User) -> list[str]:
        return [row.role for row in self._memberships(user)]

    @extend_schema_field(
        serializers.ListField(child=serializers.ChoiceField(choices=Membership.ROLES))
    )
    def get_roles_by_sign_on(self, user: User) -> list[str]:
        rows = self._memberships(user)
        return [row.role for row in rows if row.source == Membership.GrantSource.SIGN_ON]

    @staticmethod
    def _memberships(user: User) -> list[Membership]:
        found: list[Membership] = user.memberships_in_team  # type: ignore[attr-defined]  # prefetched
        return found


class TeamMemberRolesSerializer(StrictSerializer[Any]):
    roles = serializers.ListField(
        child=serializers.ChoiceField(choices=Membership.ROLES),
        allow_empty=False,
        help_text="All roles of the member; replaces the current roles.",
    )

    def validate_roles(self, value: list[str]) -> frozenset[TeamRole]:
        return frozenset(TeamRole(code) for code in value)


class CompanyRolesSerializer(serializers.ModelSerializer[User]):
    """Somebody with their company roles."""

    roles = serializers.SerializerMethodField()
    roles_by_sign_on = serializers.SerializerMethodField(
        help_text="The subset that comes from groups of the sign-on provider."
    )

    class Meta:
        model = User
        fields = ("uid", "username", "roles", "roles_by_sign_on")

    def get_roles(self, user: User) -> list[CompanyRole]:
        return sorted(CompanyRole(row.role) for row in user.company_role_bindings.all())

    def get_roles_by_sign_on(self, user: User) -> list[CompanyRole]:
        rows = user.company_role_bindings.all()
        return sorted(
            CompanyRole(row.role) for row in rows if row.source == Membership.GrantSource.SIGN_ON
        )


class CompanyRolesSetSerializer(StrictSerializer[Any]):
    roles = serializers.ListField(
        child=serializers.ChoiceField(choices=CompanyRoleBinding.ROLES),
        help_text="All company roles of the user; replaces the current roles. An empty list "
        "revokes all.",
    )

    def validate_roles(self, value: list[str]) -> frozenset[CompanyRole]:
        return frozenset(CompanyRole(code) for code in value)


class TeamFirstMemberSerializer(TeamMemberRolesSerializer):
    user = VisibleUidField(
        visible=lambda user: selectors.users_visible(user).filter(is_active=True)
    )


class TeamCreateSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    slug = serializers.SlugField(max_length=40)
    members = TeamFirstMemberSerializer(
        many=True, required=False, help_text="First members; default: none."
    )

    def validate_members(self, value: list[dict[str, Any]]) -> dict[User, frozenset[TeamRole]]:
        members = {one["user"]: one["roles"] for one in value}
        if len(members) < len(value):
            raise serializers.ValidationError(["give each user once"])
        return members


class TeamChangeSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)


class TokenSerializer(serializers.ModelSerializer[PersonalToken]):
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=PersonalToken.SCOPES))
    team = serializers.SlugRelatedField[Team](
        slug_field="uid",
        read_only=True,
        allow_null=True,
        help_text="Team that the token is limited to; null: all teams of the user.",
    )
    team_name = serializers.CharField(source="team.name", allow_null=True, default=None)

    class Meta:
        model = PersonalToken
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "scopes",
            "team",
            "team_name",
            "prefix",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
        )


class NewTokenSerializer(TokenSerializer):
    text = serializers.CharField(help_text="The token, shown only in this response.")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "text")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A token for a nightly script",
            value={
                "name": "nightly retraining",
                "scopes": ["jobs"],
                "expires_at": "2027-06-30T00:00:00Z",
            },
            request_only=True,
        )
    ]
)
class TokenCreateSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=PersonalToken.SCOPES),
        allow_empty=False,
        default=[Scope.READ],
        help_text="Scopes of the token. Default: read.",
    )
    expires_at = serializers.DateTimeField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Time of expiry; null: never, if the installation permits it.",
    )
    team = VisibleUidField(
        visible=selectors.teams_visible,
        required=False,
        allow_null=True,
        default=None,
        help_text="Slug or uid of the team that the token is limited to; null: all your teams.",
    )

    def validate_expires_at(self, value: Any) -> Any:
        return validate_future(value)

    def validate_scopes(self, value: list[str]) -> frozenset[Scope]:
        return frozenset(Scope(code) for code in value)


class TokenChangeSerializer(StrictSerializer[Any]):
    """Scopes, team and expiry of a token cannot be changed: create another one."""

    name = serializers.CharField(required=False, max_length=80)


def validate_future(value: Any) -> Any:
    """:raises ValidationError: if the instant has passed."""
    if value is not None and value <= timezone.now():
        raise serializers.ValidationError(f"must be in the future, got {value.isoformat()}")
    return value


class TeamOwnedSerializer(StrictSerializer[Any]):
    """The request for something that a team will own."""

    team = VisibleUidField(
        visible=selectors.teams_visible,
        required=False,
        help_text="Slug or uid of the owning team. Optional for members of a single team.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "team" not in attrs:
            teams = list(selectors.teams_visible(self.context["request"].user)[:2])
            if len(teams) != 1:
                message = "say which team" if teams else "you are in no team yet"
                raise serializers.ValidationError({"team": [message]})
            attrs["team"] = teams[0]
        return attrs


class TeamListFilters(ListFilters):
    """Filters of a list of things that teams own; ``lookups`` names the path to the team."""

    team = VisibleUidField(
        visible=selectors.teams_visible, required=False, help_text="Slug or uid of the team."
    )


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    actor = serializers.CharField(source="actor_name")
    team = serializers.SlugRelatedField[Team](slug_field="uid", read_only=True, allow_null=True)
    team_name = serializers.CharField(source="team.name", allow_null=True, default=None)

    class Meta:
        model = AuditEntry
        fields = (
            "id",
            "at",
            "actor",
            "action",
            "team",
            "team_name",
            "object_uid",
            "object_name",
            "detail",
            "remote_address",
            "request_id",
        )


class AuditFilters(ListFilters):
    lookups = {
        "actor": "actor_name__iexact",
        "action": "action",
        "team": "team",
        "object": "object_uid",
        "since": "at__gte",
        "until": "at__lt",
    }

    actor = serializers.CharField(required=False, max_length=150)
    action = serializers.CharField(required=False, max_length=60)
    team = VisibleUidField(visible=selectors.teams_with_visible_audit_log, required=False)
    object = serializers.CharField(required=False, max_length=32, help_text="Uid of the object.")
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)


class UserSerializer(serializers.ModelSerializer[User]):
    active = serializers.BooleanField(source="is_active")
    administrator = serializers.BooleanField(source="is_superuser")

    class Meta:
        model = User
        fields = ("uid", "username", "email", "active", "administrator")


class UserFilters(ListFilters):
    lookups = {"username": "username"}

    username = serializers.CharField(required=False, help_text="Exact username.")
