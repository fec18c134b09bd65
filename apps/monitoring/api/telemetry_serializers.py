from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.fleet import selectors as fleet
from apps.monitoring.models import NodeToken, Source
from apps.monitoring.services.sources import LONGEST, SHORTEST, Trial
from controlplane.web.rest import Filters, Reference, StrictSerializer, VisibleField

_OPTIONS = (
    "Of its kind: ``vendor`` with ``targets`` for exporters; ``url``, ``vendor`` and at will ``selector``, "
    "``node_label`` and ``window`` for a Prometheus."
)
_CREDENTIAL = "A bearer token that it wants. Kept encrypted and never shown again; empty: none."

_ENABLED = (
    "False pauses it: it is not read until it is true again. A source of agents is not read and cannot be paused: "
    "false is refused with 422; revoke the agents' tokens instead."
)


class SourceSerializer(serializers.ModelSerializer[Source]):
    cluster = Reference()
    options = serializers.DictField(help_text="Nothing secret is among them.")
    has_token = serializers.SerializerMethodField()
    refusals = serializers.ListField(
        child=serializers.CharField(), help_text="Why something of the last reading was not kept."
    )
    silent = serializers.DictField(
        child=serializers.CharField(), help_text="Parts that did not answer, and why."
    )

    class Meta:
        model = Source
        fields = (
            "uid",
            "name",
            "cluster",
            "kind",
            "options",
            "has_token",
            "every",
            "enabled",
            "tried_at",
            "read_at",
            "trouble",
            "stalled",
            "readings",
            "refused",
            "refusals",
            "silent",
            "created_by_name",
            "created_at",
        )
        extra_kwargs = {
            "every": {"help_text": "Seconds between two readings."},
            "trouble": {"help_text": "Why the last reading failed; empty: it did not."},
            "stalled": {"help_text": "Why silence of its cards is not acted upon; empty: it is."},
            "readings": {"help_text": "Cards that the last good reading told of."},
        }

    def get_has_token(self, source: Source) -> bool:
        return source.credential is not None


class SourceChangeSerializer(StrictSerializer[Any]):
    options = serializers.DictField(required=False, help_text="All of them; others are forgotten.")
    every = serializers.IntegerField(required=False, min_value=SHORTEST, max_value=LONGEST)
    token = serializers.CharField(
        required=False, allow_blank=True, write_only=True, max_length=4000, help_text=_CREDENTIAL
    )
    enabled = serializers.BooleanField(required=False, help_text=_ENABLED)


class SourceCreateSerializer(SourceChangeSerializer):
    name = serializers.CharField(max_length=60)
    cluster = VisibleField(visible=lambda _user: fleet.clusters())
    kind = serializers.CharField(max_length=20, help_text="``exporter`` or ``prometheus``.")
    options = serializers.DictField(help_text=_OPTIONS)


class SourceTrialSerializer(serializers.Serializer[Trial]):
    cards = serializers.IntegerField(help_text="How many it told of.")
    nodes = serializers.ListField(child=serializers.CharField())
    strangers = serializers.ListField(
        child=serializers.CharField(), help_text="Nodes that the cluster does not have."
    )
    refusals = serializers.ListField(child=serializers.CharField())
    silent = serializers.DictField(child=serializers.CharField())


class NodeTokenSerializer(serializers.ModelSerializer[NodeToken]):
    node = Reference()
    agent = serializers.DictField(help_text="What its agent says of itself.")

    class Meta:
        model = NodeToken
        fields = (
            "uid",
            "node",
            "created_by_name",
            "created_at",
            "used_at",
            "revoked_at",
            "sequence",
            "agent",
        )


class NodeTokenFilters(Filters):
    node = VisibleField(visible=lambda _user: fleet.nodes(), required=False, help_text="Its uid.")
    lookups = {"node": "node"}


class NodeTokenCreateSerializer(StrictSerializer[Any]):
    node = VisibleField(visible=lambda _user: fleet.nodes())


class NodeTokenTextSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="It is shown only here.")
