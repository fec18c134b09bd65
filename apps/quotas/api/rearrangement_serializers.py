"""The fleet's parts and the moves that bring free cards together, as JSON."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from apps.quotas.models import Claim, Rearrangement, RearrangementMove
from apps.quotas.selectors.openings import Use
from apps.quotas.selectors.sights import Sight
from apps.quotas.selectors.topology import Domain
from apps.quotas.services.rearrangements import Wish
from controlplane.domain.rearrangements import Purpose, RearrangementState
from controlplane.domain.scheduling.defragmentation import DefragmentationPlan
from controlplane.web.rest import Filters, Query, StrictSerializer, VisibleField

MOST_NODES = 16


class TopologyQuery(Query):
    at = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="A part, such as `spine:alpha/s1`; empty: the fleet.",
    )


class DomainSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="fleet, cluster, a level of the network, or node.")
    name = serializers.CharField()
    key = serializers.CharField(help_text="For `at`.")
    nodes = serializers.IntegerField()
    whole_nodes = serializers.IntegerField(help_text="Nodes on which nothing runs.")
    cards = serializers.IntegerField()
    held = serializers.IntegerField()
    free = serializers.IntegerField(help_text="Cards that anybody could be given.")
    kept = serializers.IntegerField(help_text="Free cards that are for somebody in particular.")
    no_new_work = serializers.IntegerField()
    broken = serializers.IntegerField()
    fragments = serializers.FloatField(
        help_text="Free cards of no use to what people ask for, averaged over what they ask for."
    )
    largest = serializers.IntegerField(help_text="The most free cards of one node.")


class CellSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    chip = serializers.CharField()
    use = serializers.ChoiceField(choices=[use.name.lower() for use in Use])
    team = serializers.CharField(allow_null=True)
    queue = serializers.CharField(allow_null=True)
    work = serializers.CharField(allow_null=True, help_text="Null where you may not know it.")
    since = serializers.DateTimeField(allow_null=True)


class TopologySerializer(serializers.Serializer[Any]):
    here = DomainSerializer()
    below = DomainSerializer(many=True)
    cards = CellSerializer(many=True, help_text="Of a node.")


def domain_json(domain: Domain) -> dict[str, Any]:
    """As ``DomainSerializer`` says."""
    return {
        "kind": domain.kind,
        "name": domain.name,
        "key": domain.key,
        "nodes": domain.nodes,
        "whole_nodes": domain.whole,
        "cards": domain.cards,
        "held": domain.held,
        "free": domain.free,
        "kept": domain.uses[Use.KEPT],
        "no_new_work": domain.uses[Use.NO_NEW_WORK],
        "broken": domain.uses[Use.BROKEN],
        "fragments": round(domain.fragments, 3),
        "largest": domain.largest,
    }


def _nothing_yet(_user: Any) -> QuerySet[Claim]:
    """Who asks is known with the request; see ``WishSerializer.__init__``."""
    return Claim.objects.none()


class WishSerializer(StrictSerializer[Any]):
    purpose = serializers.ChoiceField(choices=[purpose.value for purpose in Purpose])
    nodes = serializers.IntegerField(
        min_value=1, max_value=MOST_NODES, default=1, help_text="Whole nodes wanted."
    )
    chip = serializers.CharField(
        default="", allow_blank=True, max_length=60, help_text="Of whole nodes; empty: any."
    )
    claim = VisibleField(
        visible=_nothing_yet,
        required=False,
        allow_null=True,
        default=None,
        help_text="The waiting claim that is to have room; for `room_for`, and only there.",
    )
    dry_run = serializers.BooleanField(default=False, help_text="Say what would be proposed.")

    def __init__(self, *args: Any, claims: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if claims is not None:
            self.fields["claim"] = VisibleField(
                visible=claims, required=False, allow_null=True, default=None
            )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        wanted = attrs["purpose"] == Purpose.ROOM_FOR
        if wanted and attrs["claim"] is None:
            raise serializers.ValidationError(
                {"claim": ["say which waiting claim is to have room"]}
            )
        if not wanted and attrs["claim"] is not None:
            raise serializers.ValidationError(
                {"claim": ["only room_for is for a claim; leave it out"]}
            )
        return attrs

    def wish(self) -> Wish:
        given = self.validated_data
        return Wish(
            purpose=Purpose(given["purpose"]),
            nodes=given["nodes"],
            chip=given["chip"],
            claim=given["claim"],
        )


class MoveSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    state = serializers.CharField(allow_null=True, help_text="Null in a dry run.")
    team = serializers.CharField()
    work = serializers.CharField(allow_null=True, help_text="Null where you may not know it.")
    cards = serializers.IntegerField()
    chip = serializers.CharField()
    from_nodes = serializers.ListField(child=serializers.CharField(), help_text="Uids of nodes.")
    to_nodes = serializers.ListField(child=serializers.CharField(), help_text="Uids of nodes.")
    lost_seconds = serializers.FloatField(help_text="Work that is done again.")
    cost = serializers.FloatField(help_text="Card-seconds, with the restart.")


class RearrangementSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField(allow_null=True, help_text="Null in a dry run.")
    purpose = serializers.CharField()
    state = serializers.CharField(allow_null=True)
    state_reason = serializers.CharField()
    reason = serializers.CharField(help_text="What comes of it.")
    whole_before = serializers.IntegerField()
    whole_after = serializers.IntegerField()
    whole_found = serializers.IntegerField(allow_null=True, help_text="Measured at its end.")
    fragments_before = serializers.FloatField()
    fragments_after = serializers.FloatField()
    fragments_found = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField(help_text="Card-seconds that the moves throw away.")
    gain = serializers.FloatField(help_text="Card-seconds that the room is worth.")
    proposed_by = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    moves = MoveSerializer(many=True)


def rearrangement_json(
    row: Rearrangement, moves: list[RearrangementMove], sight: Sight
) -> dict[str, Any]:
    """As ``RearrangementSerializer`` says."""
    return {
        "uid": row.uid,
        "purpose": row.purpose,
        "state": row.state,
        "state_reason": row.state_reason,
        **_figures(row),
        "whole_found": row.whole_found,
        "fragments_found": row.fragments_found,
        "proposed_by": row.proposed_by_name,
        "expires_at": row.expires_at,
        "moves": [
            {
                "number": move.number,
                "state": move.state,
                **_work(move.claim, sight),
                "chip": move.chip,
                "from_nodes": [place["node"] for place in move.source],
                "to_nodes": [place["node"] for place in move.target],
                "lost_seconds": move.lost,
                "cost": move.cost,
            }
            for move in moves
        ],
    }


def proposal_json(
    purpose: Purpose, plan: DefragmentationPlan, claims: dict[str, Claim], sight: Sight
) -> dict[str, Any]:
    """A dry run, as ``RearrangementSerializer`` says."""
    return {
        "uid": None,
        "purpose": purpose.value,
        "state": None,
        "state_reason": "",
        **_figures(plan),
        "whole_found": None,
        "fragments_found": None,
        "proposed_by": None,
        "expires_at": None,
        "moves": [
            {
                "number": number,
                "state": None,
                **_work(claims[move.claim], sight),
                "chip": move.chip,
                "from_nodes": [replica.node for replica in move.source],
                "to_nodes": [replica.node for replica in move.target],
                "lost_seconds": move.lost.total_seconds(),
                "cost": move.cost,
            }
            for number, move in enumerate(plan.moves, 1)
        ],
    }


def _figures(plan: Rearrangement | DefragmentationPlan) -> dict[str, Any]:
    return {
        "reason": plan.reason,
        "whole_before": plan.whole_before,
        "whole_after": plan.whole_after,
        "fragments_before": plan.fragments_before,
        "fragments_after": plan.fragments_after,
        "cost": plan.cost,
        "gain": plan.gain,
    }


def _work(claim: Claim, sight: Sight) -> dict[str, Any]:
    return {
        "team": claim.team.name,
        "work": claim.work_name if sight.names(claim) else None,
        "cards": claim.card_count,
    }


class RearrangementFilters(Filters):
    lookups = {"state": "state__in"}

    state = serializers.MultipleChoiceField(
        choices=[state.value for state in RearrangementState], required=False
    )
