from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.accounts import selectors as accounts
from apps.quotas.models import Claim
from controlplane.domain.claims import ClaimState
from controlplane.web.rest import Filters, Reference, VisibleField


class RoleShapeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    replicas = serializers.IntegerField()
    cards = serializers.IntegerField(help_text="Of one replica.")
    cpu = serializers.IntegerField(help_text="Thousandths of a core, for one replica.")
    memory = serializers.IntegerField(help_text="Bytes, for one replica; 0: no limit.")


class ReplicaPlacementSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    index = serializers.IntegerField()
    node = serializers.CharField(help_text="A node's uid.")
    cards = serializers.ListField(child=serializers.IntegerField())


class ClaimSerializer(serializers.ModelSerializer[Claim]):
    team = Reference()
    queue = Reference()
    shape = RoleShapeSerializer(many=True)
    chips = serializers.ListField(child=serializers.CharField())
    placement = ReplicaPlacementSerializer(many=True)
    explanation = serializers.CharField(help_text="Why it waits, or why it got these cards.")
    explanation_numbers = serializers.DictField()

    class Meta:
        model = Claim
        fields = (
            "uid",
            "state",
            "team",
            "queue",
            "owner_kind",
            "owner_uid",
            "shape",
            "card_count",
            "chips",
            "priority",
            "explanation",
            "explanation_numbers",
            "chip",
            "placement",
            "progress",
            "created_at",
            "admitted_at",
            "revoke_by",
            "released_at",
            "release_reason",
        )


class ClaimFilters(Filters):
    lookups = {
        "state": "state__in",
        "team": "team",
        "queue": "queue__name",
        "owner": "owner_uid",
    }

    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in ClaimState], required=False
    )
    team = VisibleField(visible=accounts.teams_of, required=False, help_text="A team's uid.")
    queue = serializers.CharField(required=False, help_text="A queue's name.")
    owner = serializers.CharField(required=False, help_text="The uid of an attempt or a replica.")
