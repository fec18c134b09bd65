"""Agents that push the figures of their node: which speak, and which have fallen silent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Count, Max, Min, Q

from apps.fleet.models import Cluster
from apps.monitoring.models import NodeToken

#: An agent that has not been heard of for longer is silent: its figures say nothing of now.
SILENT_AFTER = timedelta(seconds=60)


class AgentState(StrEnum):
    """How a node's agent does, by its token."""

    WELL = "well"
    SILENT = "silent"
    #: Nobody has used the token yet.
    UNSEEN = "unseen"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """Nodes that have a good token, by what is heard of them."""

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
    by_node = good.order_by().values("node").annotate(last=Max("used_at"))
    found = by_node.aggregate(
        nodes=Count("node"),
        heard=Count("node", filter=Q(last__gte=at - SILENT_AFTER)),
        unseen=Count("node", filter=Q(last=None)),
        oldest=Min("last"),
    )
    return Agents(**found)


def agent_state(token: NodeToken, *, at: datetime) -> AgentState:
    """How the agent does that has this token."""
    if token.revoked_at is not None:
        return AgentState.REVOKED
    if token.used_at is None:
        return AgentState.UNSEEN
    return AgentState.SILENT if token.used_at < at - SILENT_AFTER else AgentState.WELL
