"""What agents send of their node, each batch once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction

from apps.monitoring.models import NodeToken
from apps.monitoring.selectors.sources import PUSH
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.sheets import AHEAD, OLD
from apps.monitoring.services.sources import push_source, source_pushed
from apps.monitoring.services.telemetry import Recorded, readings_record
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.signals import Origin, Signal
from controlplane.ports import registry
from controlplane.ports.readers import telemetry_reader
from controlplane.ports.readings import MalformedExposition
from controlplane.ports.telemetry import Batch

#: Cards that one node can have; slices are passed over anyway.
MOST_CARDS = 1024
#: The agent's own word on whether the tool that reads the cards answers.
READER_OK = "ninefold_agent_reader_ok"
#: The fault of a node where it does not.
READER_SILENT = "agent-reader-silent"
#: Takes the batch if it is the token's newest, and says the source of the cluster's agents where there is one.
#: Written out, for to put together what each batch needs takes longer than its answer.
_TAKE = """
UPDATE monitoring_nodetoken
   SET sequence = %(sequence)s, used_at = %(at)s, agent = %(agent)s::jsonb
 WHERE id = %(token)s AND revoked_at IS NULL AND sequence < %(sequence)s
RETURNING (SELECT source.id FROM monitoring_source AS source
            WHERE source.cluster_id = %(cluster)s AND source.kind = %(push)s
            ORDER BY source.name LIMIT 1)
"""
_READER_OK = re.compile(rf"^{READER_OK}(?:\{{[^}}\n]*\}})? +([0-9.]+)", re.MULTILINE)


class PushRefused(Exception):
    """A batch that can never be taken; ``field`` is what is wrong with it."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class AnotherNode(Exception):
    """A token was used to speak for a node that it is not of."""

    def __init__(self, *, own: str) -> None:
        super().__init__(f"this token is of the node {own}; every card of the batch is of another")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    #: The newest batch that was taken of this token, and whether that was this one.
    sequence: int
    taken: bool
    recorded: Recorded = field(default_factory=Recorded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A batch as it was sent."""

    vendor: str
    sequence: int
    measured_at: datetime
    text: str
    #: What the sender says of itself.
    agent: str = ""


def push_record(*, token: NodeToken, push: Push, at: datetime) -> Pushed:
    """Keep what the token's node says of its cards; a batch that was taken, or overtaken, changes nothing.

    :raises PushRefused: if the vendor, the time or the text is wrong.
    :raises AnotherNode: if every card of it is of another node.
    """
    if push.measured_at > at + AHEAD or push.measured_at < at - OLD:
        message = (
            f"{push.measured_at.isoformat()} is more than a minute ahead of or a day behind "
            f"{at.isoformat()}; is the node's clock right?"
        )
        raise PushRefused(message, field="X-Ninefold-At")
    try:
        reader = telemetry_reader(push.vendor)
        batch = reader.read(push.text, at=push.measured_at, node=token.node.name, most=MOST_CARDS)
    except registry.UnknownAdapter as unknown:
        raise PushRefused(str(unknown), field="X-Ninefold-Vendor") from unknown
    except MalformedExposition as wrong:
        raise PushRefused(str(wrong), field="body") from wrong
    node = token.node.name
    if batch.readings and all(reading.node != node for reading in batch.readings):
        raise AnotherNode(own=node)
    return _record(token=token, push=push, batch=batch, at=at)


@transaction.atomic
def _record(*, token: NodeToken, push: Push, batch: Batch, at: datetime) -> Pushed:
    node = token.node
    reader_ok = _reader_ok(push.text)
    agent = {"name": push.agent, "vendor": push.vendor, "reader_ok": reader_ok}
    with connection.cursor() as cursor:
        cursor.execute(
            _TAKE,
            {
                "token": token.pk,
                "sequence": push.sequence,
                "at": at,
                "agent": json.dumps(agent),
                "cluster": node.cluster_id,
                "push": PUSH,
            },
        )
        taken = cursor.fetchone()
    if taken is None:
        newest = NodeToken.objects.values_list("sequence", flat=True).get(pk=token.pk)
        return Pushed(sequence=newest, taken=False)
    source = push_source(node.cluster, standing=taken[0])
    recorded = readings_record(
        source=source,
        readings=batch.readings,
        at=at,
        origin=Origin.AGENT,
        node=node.name,
        refused=batch.refused,
    )
    if reader_ok is False or (reader_ok and token.agent.get("reader_ok") is False):
        signals_record(signals=[_reader_signal(token, push, stands=not reader_ok)], at=at)
    source_pushed(source=source, at=at, recorded=recorded)
    return Pushed(sequence=push.sequence, taken=True, recorded=recorded)


def _reader_ok(text: str) -> bool | None:
    """None where the agent does not say."""
    found = _READER_OK.search(text)
    return found[1].strip("0.") != "" if found else None


def _reader_signal(token: NodeToken, push: Push, *, stands: bool) -> Signal:
    return Signal(
        origin=Origin.AGENT,
        cluster=token.node.cluster.uid,
        node=token.node.name,
        index=None,
        code=READER_SILENT,
        level=FaultLevel.NOTE,
        at=push.measured_at,
        active=stands,
        message="the tool that reads the node's cards does not answer",
        vendor=push.vendor,
    )
