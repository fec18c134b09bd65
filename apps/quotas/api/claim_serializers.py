from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from apps.fleet.models import Node
from apps.quotas.models import Claim, WhatIf
from apps.quotas.selectors.forecasts import Outlook
from controlplane.domain.scheduling.questions import MOST_CARDS, MOST_NODES
from controlplane.domain.scheduling.what_if import (
    Change,
    DrainNode,
    MoreCards,
    MoreNodes,
    Urgent,
)
from controlplane.web.rest import Query, Reference, StrictSerializer, VisibleField


class StandingSerializer(serializers.Serializer[Any]):
    reserved = serializers.IntegerField()
    guaranteed = serializers.IntegerField()
    cap = serializers.IntegerField(allow_null=True)
    used = serializers.IntegerField()
    borrowed = serializers.IntegerField(help_text="Held beyond the guarantee.")
    lent = serializers.IntegerField(help_text="Of the guarantee, held by others.")
    idle = serializers.IntegerField(help_text="Of the guarantee, held by nobody.")


class ShareSerializer(serializers.Serializer[Any]):
    chip = serializers.CharField(help_text="Empty: all chips together.", allow_blank=True)
    standing = StandingSerializer()


class AwaitedSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(allow_blank=True, help_text="Empty where it is another team's.")
    team = serializers.CharField()
    cards = serializers.IntegerField()


class OutlookSerializer(serializers.Serializer[Any]):
    starts_at = serializers.DateTimeField(allow_null=True)
    earliest = serializers.DateTimeField(allow_null=True)
    latest = serializers.DateTimeField(allow_null=True)
    chip = serializers.CharField(allow_blank=True)
    nodes = serializers.IntegerField()
    waits_for = AwaitedSerializer(many=True)
    others = serializers.IntegerField(help_text="How many it waits for beside those.")
    place = serializers.IntegerField(allow_null=True, help_text="Among all that wait, from 1.")
    made_at = serializers.DateTimeField(allow_null=True)
    beyond = serializers.BooleanField(help_text="Looked at, but it does not start within a day.")
    unseen = serializers.BooleanField(help_text="Too many wait before it to be looked at.")


def outlook_json(outlook: Outlook | None) -> dict[str, Any]:
    """What is known; nothing but empty values where nobody has looked yet."""
    return dict(OutlookSerializer(outlook or Outlook()).data)


class WhySerializer(serializers.Serializer[Any]):
    state = serializers.CharField(source="claim.state")
    explanation = serializers.CharField(source="claim.explanation")
    numbers = serializers.DictField(source="claim.explanation_numbers")
    queue = Reference(source="claim.queue")
    shares = ShareSerializer(many=True, help_text="What its queue has of the chips it asks for.")
    free = serializers.DictField(child=serializers.IntegerField(), help_text="Free cards by chip.")
    place = serializers.IntegerField(allow_null=True, help_text="In its queue, from 1.")
    waiting = serializers.IntegerField(help_text="Claims that wait in its queue.")
    forecast = OutlookSerializer(source="outlook", allow_null=True)
    looked_at = serializers.DateTimeField(
        allow_null=True, help_text="When the scheduler last looked at all that waits."
    )


class MoreCardsSerializer(StrictSerializer[Any]):
    chip = serializers.CharField(max_length=60)
    cards = serializers.IntegerField(min_value=-MOST_CARDS, max_value=MOST_CARDS)


class MoreNodesSerializer(StrictSerializer[Any]):
    like = VisibleField[Node](visible=lambda _user: Node.objects.all(), help_text="A node's uid.")
    nodes = serializers.IntegerField(min_value=1, max_value=MOST_NODES)


class QuestionSerializer(StrictSerializer[Any]):
    """What would be different: at least one of these."""

    more_cards = MoreCardsSerializer(
        required=False, help_text="Guaranteed to the claim's queue; fewer if negative."
    )
    more_nodes = MoreNodesSerializer(required=False)
    drain_node = VisibleField[Node](
        visible=lambda _user: Node.objects.all(), required=False, help_text="A node's uid."
    )
    priority = serializers.IntegerField(
        required=False, min_value=-1000, max_value=1000, help_text="Of the claim."
    )


def changes_of(given: Mapping[str, Any], *, claim: Claim) -> list[Change]:
    """The changes that a checked question names."""
    changes: list[Change] = []
    if more := given.get("more_cards"):
        queue = claim.queue.uid
        changes.append(MoreCards(queue=queue, chip=more["chip"], cards=more["cards"]))
    if nodes := given.get("more_nodes"):
        changes.append(MoreNodes(like=nodes["like"].uid, nodes=nodes["nodes"]))
    if node := given.get("drain_node"):
        changes.append(DrainNode(node=node.uid))
    if "priority" in given:
        changes.append(Urgent(claim=claim.uid, priority=given["priority"]))
    return changes


class StartSerializer(serializers.Serializer[Any]):
    starts_at = serializers.DateTimeField(allow_null=True)
    earliest = serializers.DateTimeField(allow_null=True)
    latest = serializers.DateTimeField(allow_null=True)
    chip = serializers.CharField(allow_blank=True)
    nodes = serializers.IntegerField()


class ConcernedSerializer(serializers.Serializer[Any]):
    work = AwaitedSerializer()
    gained = serializers.DurationField(
        allow_null=True, help_text="How much earlier it starts; negative if later."
    )
    before = StartSerializer(allow_null=True)
    after = StartSerializer(allow_null=True)


class AnswerSerializer(serializers.Serializer[Any]):
    own = ConcernedSerializer(allow_null=True)
    earlier = ConcernedSerializer(many=True)
    later = ConcernedSerializer(many=True)
    stopped = ConcernedSerializer(many=True, help_text="Runs now and would have to stop.")
    earlier_count = serializers.IntegerField()
    later_count = serializers.IntegerField()
    stopped_count = serializers.IntegerField()
    starting_before = serializers.IntegerField(help_text="That start within a day as it is.")
    starting_after = serializers.IntegerField()
    waiting = serializers.IntegerField()
    looked_at = serializers.IntegerField()
    seconds = serializers.FloatField()


class WhatIfSerializer(serializers.ModelSerializer[WhatIf]):
    queue = Reference()
    changes = serializers.ListField(child=serializers.DictField())

    class Meta:
        model = WhatIf
        fields = ("uid", "state", "queue", "changes", "refusal", "created_at", "answered_at")


class AnsweredSerializer(serializers.Serializer[Any]):
    asked = WhatIfSerializer()
    answer = AnswerSerializer(allow_null=True, help_text="Null until it is there.")


class AskQuery(Query):
    chip = serializers.CharField(max_length=60)
    cards = serializers.IntegerField(min_value=1, max_value=MOST_CARDS)
    together = serializers.IntegerField(
        min_value=1, max_value=64, default=1, help_text="Cards on one node each."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["cards"] % attrs["together"]:
            raise serializers.ValidationError(
                {"cards": [f"give a multiple of {attrs['together']}, got {attrs['cards']}"]}
            )
        return attrs


class LoserSerializer(serializers.Serializer[Any]):
    work = AwaitedSerializer()
    queue = serializers.CharField()
    cards = serializers.IntegerField()
    lost = serializers.DurationField(help_text="Done since it last saved.")
    reason = serializers.CharField()


class ReclaimPreviewSerializer(serializers.Serializer[Any]):
    starts = serializers.BooleanField(help_text="It would start at once, and nobody stop.")
    reason = serializers.CharField(allow_blank=True)
    cards = serializers.IntegerField(help_text="Cards that would come back.")
    losers = LoserSerializer(many=True)
