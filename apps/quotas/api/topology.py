"""The fleet's topology: what is allocated and free in each part of it, down to the card."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.quotas.selectors.free_capacity import CardUse
from apps.quotas.selectors.topology import (
    CardCell,
    TopologyDomain,
    TopologyDomainNotFound,
    fleet_topology,
)
from controlplane.domain.common.permissions import Scope
from controlplane.web.rest import QuerySerializer, StrictView


class TopologyQuery(QuerySerializer):
    at = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="Domain, for example `spine:alpha/s1`; empty: the fleet.",
    )


class TopologyDomainSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="fleet, cluster, a topology level, or node.")
    name = serializers.CharField()
    key = serializers.CharField(help_text="Value for `at`.")
    nodes = serializers.IntegerField()
    whole_nodes = serializers.IntegerField(help_text="Empty nodes.")
    cards = serializers.IntegerField()
    held = serializers.IntegerField()
    free = serializers.IntegerField(help_text="Cards that any claim can use.")
    reserved = serializers.IntegerField(help_text="Free cards that are reserved for a claim.")
    no_new_work = serializers.IntegerField()
    broken = serializers.IntegerField()
    fragments = serializers.FloatField(
        help_text="Free cards that typical requests cannot use, weighted by their frequency."
    )
    largest = serializers.IntegerField(help_text="Maximum number of free cards on one node.")


class CardCellSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    chip = serializers.CharField()
    use = serializers.ChoiceField(choices=[use.name.lower() for use in CardUse])
    team = serializers.CharField(allow_null=True)
    queue = serializers.CharField(allow_null=True)
    work = serializers.CharField(allow_null=True, help_text="Null if it is not visible to you.")
    since = serializers.DateTimeField(allow_null=True)


class TopologySerializer(serializers.Serializer[Any]):
    here = TopologyDomainSerializer()
    below = TopologyDomainSerializer(many=True)
    cards = CardCellSerializer(many=True, help_text="Cards; only for a node.")


def topology_domain_json(domain: TopologyDomain) -> dict[str, Any]:
    """As ``TopologyDomainSerializer`` says."""
    return {
        "kind": domain.kind,
        "name": domain.name,
        "key": domain.key,
        "nodes": domain.nodes,
        "whole_nodes": domain.whole,
        "cards": domain.cards,
        "held": domain.allocated,
        "free": domain.free,
        "reserved": domain.uses[CardUse.RESERVED],
        "no_new_work": domain.uses[CardUse.NO_NEW_WORK],
        "broken": domain.uses[CardUse.BROKEN],
        "fragments": round(domain.fragments, 3),
        "largest": domain.largest,
    }


class TopologyView(StrictView):
    """A part of the fleet, and what is below it."""

    tag = "scheduling"
    token_scope = Scope.ADMIN
    queries = {"get": TopologyQuery}

    @extend_schema(summary="Fleet topology and allocations", responses=TopologySerializer)
    def get(self, request: Request) -> Response:
        seen = fleet_topology(request.user)
        try:
            here = seen.at(self.query["at"])
        except TopologyDomainNotFound as missing:
            raise Http404 from missing
        cells = seen.cells(here.occupancy) if here.occupancy else ()
        answer = {
            "here": topology_domain_json(here),
            "below": [topology_domain_json(domain) for domain in here.below],
            "cards": [_card_cell_json(cell) for cell in cells],
        }
        return Response(TopologySerializer(answer).data)


def _card_cell_json(cell: CardCell) -> dict[str, Any]:
    return {
        "index": cell.index,
        "chip": cell.chip,
        "use": cell.use.name.lower(),
        "team": cell.team or None,
        "queue": cell.queue or None,
        "work": cell.claim.work_name if cell.claim and cell.named else None,
        "since": cell.claim.since if cell.claim else None,
    }
