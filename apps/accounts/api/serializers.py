from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from apps.accounts import selectors
from apps.accounts.models import PersonalToken, Team
from controlplane.domain.permissions import Role
from controlplane.web.rest import StrictSerializer, VisibleField


class TeamSerializer(serializers.ModelSerializer[Team]):
    #: The caller's own.
    roles = serializers.SerializerMethodField()

    class Meta:
        model = Team
        fields = ("uid", "slug", "name", "roles", "created_at")

    def get_roles(self, team: Team) -> list[Role]:
        return sorted(self.context["roles"].get(team.pk, ()))


class MeSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    username = serializers.CharField()
    email = serializers.CharField()
    administrator = serializers.BooleanField(
        help_text="Of the whole company: may do everything in every team."
    )
    teams = TeamSerializer(many=True)


class TokenSerializer(serializers.ModelSerializer[PersonalToken]):
    class Meta:
        model = PersonalToken
        fields = (
            "uid",
            "name",
            "prefix",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
        )


class NewTokenSerializer(TokenSerializer):
    text = serializers.CharField(help_text="The token itself. It is shown this once.")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "text")  # type: ignore[assignment]


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A token for a nightly script",
            value={"name": "nightly retraining", "expires_at": "2027-06-30T00:00:00Z"},
            request_only=True,
        )
    ]
)
class TokenCreateSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Null: it never expires."
    )

    def validate_expires_at(self, value: Any) -> Any:
        return in_the_future(value)


def in_the_future(value: Any) -> Any:
    """:raises ValidationError: if the instant has passed."""
    if value is not None and value <= timezone.now():
        raise serializers.ValidationError(f"must be in the future, got {value.isoformat()}")
    return value


class OwnedSerializer(StrictSerializer[Any]):
    """The request for something that a team will own."""

    team = VisibleField(
        visible=selectors.teams_of,
        required=False,
        help_text="The owner's uid; may be left out by who sees only one team.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "team" not in attrs:
            teams = list(selectors.teams_of(self.context["request"].user)[:2])
            if len(teams) != 1:
                message = "say which team" if teams else "you are in no team yet"
                raise serializers.ValidationError({"team": [message]})
            attrs["team"] = teams[0]
        return attrs
