from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.fleet.models import Card, Cluster, Node
from controlplane.domain.accelerators import CardState, ChipKind
from controlplane.web.rest import Filters, Reference


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    nodes = serializers.IntegerField(source="node_count")
    cards = serializers.IntegerField(source="card_count")

    class Meta:
        model = Cluster
        fields = (
            "uid",
            "name",
            "kind",
            "binding",
            "isolation",
            "trouble",
            "last_seen_at",
            "nodes",
            "cards",
        )


class NodeSerializer(serializers.ModelSerializer[Node]):
    cluster = Reference()
    labels = serializers.DictField(child=serializers.CharField())

    class Meta:
        model = Node
        fields = (
            "uid",
            "name",
            "cluster",
            "cpu",
            "memory",
            "ready",
            "cordoned",
            "labels",
            "last_seen_at",
        )
        extra_kwargs = {
            "cpu": {"help_text": "Thousandths of a core."},
            "memory": {"help_text": "Bytes."},
        }


class CardSerializer(serializers.ModelSerializer[Card]):
    node = Reference()

    class Meta:
        model = Card
        fields = ("uid", "node", "index", "chip", "memory", "serial", "state", "state_reason")
        extra_kwargs = {
            "memory": {"help_text": "Bytes; 0 where the card has no memory of its own."}
        }


class NodeFilters(Filters):
    lookups = {"cluster": "cluster__uid", "ready": "ready"}

    cluster = serializers.CharField(required=False, help_text="A cluster's uid.")
    ready = serializers.BooleanField(required=False)


class CardFilters(Filters):
    lookups = {
        "cluster": "node__cluster__uid",
        "node": "node__uid",
        "chip": "chip",
        "state": "state__in",
    }

    cluster = serializers.CharField(required=False, help_text="A cluster's uid.")
    node = serializers.CharField(required=False, help_text="A node's uid.")
    chip = serializers.CharField(required=False)
    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in CardState], required=False
    )


class ChipSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    vendor = serializers.CharField()
    kind = serializers.ChoiceField(choices=[(kind.value, kind.value) for kind in ChipKind])
    memory = serializers.IntegerField(help_text="Bytes of one card; 0 where it has none.")
    legal_request_sizes = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Cards of one request on one node that the hardware allows; empty: any.",
    )
    cards = serializers.IntegerField(help_text="In the whole fleet.")
    usable_cards = serializers.IntegerField(help_text="Of these, how many take new work.")
