"""Fleets of any size, full of work, made by a few statements."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from apps.accounts.models import Team
from apps.fleet.models import Card, Cluster, Node
from apps.quotas.models import Allocation, Claim, Queue
from controlplane.domain.common.topology import network_labels
from controlplane.domain.quotas.claims import ClaimState, GangShape, RoleShape

#: Cards that each claim asks for, in turn: a node of eight is full after four of them, but for one card.
SIZES = (4, 1, 1, 1)
NODES_OF_LEAF, LEAVES_OF_SPINE, CARDS = 16, 4, 8


def crowd(*, nodes: int, claims: int, team: Team, chip: str = "nvidia-h800") -> Cluster:
    """A cluster of nodes of eight, and claims of the team on them until they run out or the nodes are full."""
    cluster = Cluster.objects.create(name="crowd", kind="fake")
    created = Node.objects.bulk_create(_node(cluster, number) for number in range(nodes))
    cards = Card.objects.bulk_create(
        Card(node=node, index=index, chip=chip) for node in created for index in range(CARDS)
    )
    queue = Queue.objects.create(name="crowded", team=team)
    at = timezone.now() - timedelta(hours=3)
    rows, held, place = [], [], 0
    for number in range(claims):
        size = SIZES[number % len(SIZES)]
        if place % CARDS == CARDS - 1:
            place += 1  # the last card of a node stays free
        if place + size > len(cards):
            break
        own = cards[place : place + size]
        rows.append(_claim(number, team=team, queue=queue, cards=own))
        held.append(own)
        place += size
    Claim.objects.bulk_create(rows)
    Claim.objects.update(admitted_at=at)
    Allocation.objects.bulk_create(
        Allocation(
            claim=claim, card=card, node_id=card.node_id, role="run", replica=0, allocated_at=at
        )
        for claim, own in zip(rows, held, strict=True)
        for card in own
    )
    return cluster


def _node(cluster: Cluster, number: int) -> Node:
    leaf = number // NODES_OF_LEAF
    domains = {"spine": f"s{leaf // LEAVES_OF_SPINE}", "leaf": f"l{leaf}"}
    return Node(cluster=cluster, name=f"n-{number}", labels=dict(network_labels(domains)))


def _claim(number: int, *, team: Team, queue: Queue, cards: list[Card]) -> Claim:
    role = RoleShape(name="run", replicas=1, cards=len(cards))
    node = cards[0].node.uid
    return Claim(
        owner_kind="attempt",
        owner_uid=f"{number:032x}",
        work_kind="job",
        work_uid=f"{number:032x}",
        work_name=f"work {number}",
        team=team,
        queue=queue,
        shape=GangShape(roles=(role,)).as_json(),
        card_count=len(cards),
        chips=[cards[0].chip],
        chip=cards[0].chip,
        state=ClaimState.ADMITTED,
        preemptible=True,
        placement=[
            {"role": "run", "index": 0, "node": node, "cards": [card.index for card in cards]}
        ],
    )
