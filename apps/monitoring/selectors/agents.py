"""Agents that push the figures of their node: which speak, and which have fallen silent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Count, F, Max, Min, Q

from apps.fleet.models import Cluster, Node
from apps.monitoring.models import NodeToken

#: An agent that has not been heard of for longer is silent: its figures say nothing of now.
SILENT_AFTER = timedelta(seconds=60)
#: Nodes that their cluster lists no more, though it was asked since: what they had of agents went with them.
GONE = Q(node__last_seen_at__lt=F("node__cluster__last_seen_at"))


class AgentState(StrEnum):
    """How a node's agent does, by its token."""

    WELL = "well"
    SILENT = "silent"
    #: Nobody has used the token yet.
    UNSEEN = "unseen"
    #: It is not heard, and its cluster does not list the node any more.
    GONE = "gone"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """Nodes that have a good token, by what is heard of them; without those that are gone and not heard."""

    nodes: int = 0
    heard: int = 0
    #: Nobody has used any token of theirs yet.
    unseen: int = 0
    #: When the one was heard that has been quiet for the longest; None if none was ever heard.
    oldest: datetime | None = None

    @property
    def silent(self) -> int:
        """Nodes whose agent was heard once, and not lately."""
        return self.nodes - self.heard - self.unseen


def agents_heard(*, at: datetime, cluster: Cluster | None = None) -> Agents:
    """The agents of all nodes, or of one cluster's, each by its newest token, in one statement."""
    good = NodeToken.objects.filter(
        revoked_at=None, node__removed_at=None, node__cluster__removed_at=None
    )
    if cluster is not None:
        good = good.filter(node__cluster=cluster)
    there = good.filter(~GONE | Q(used_at__gte=at - SILENT_AFTER))
    by_node = there.order_by().values("node").annotate(last=Max("used_at"))
    found = by_node.aggregate(
        nodes=Count("node"),
        heard=Count("node", filter=Q(last__gte=at - SILENT_AFTER)),
        unseen=Count("node", filter=Q(last=None)),
        oldest=Min("last"),
    )
    return Agents(**found)


def agent_state(token: NodeToken, *, at: datetime) -> AgentState:
    """How the agent does that has this token, loaded with its node and cluster."""
    if token.revoked_at is not None:
        return AgentState.REVOKED
    if token.used_at is not None and token.used_at >= at - SILENT_AFTER:
        return AgentState.WELL
    if _is_gone(token.node):
        return AgentState.GONE
    return AgentState.UNSEEN if token.used_at is None else AgentState.SILENT


def _is_gone(node: Node) -> bool:
    """As ``GONE`` says it."""
    listed, asked = node.last_seen_at, node.cluster.last_seen_at
    return listed is not None and asked is not None and listed < asked
