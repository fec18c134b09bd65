"""Questions about where figures come from, and the adapters that read them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection
from django.db.models import Model, QuerySet

from apps.accounts.selectors import RequestUser
from apps.accounts.services.personal_tokens import digest_of
from apps.fleet.models import Cluster, Node
from apps.fleet.selectors import operates
from apps.monitoring.models import NodeToken, Source
from controlplane.persistence.encryption import Undecryptable, decrypt
from controlplane.ports import registry
from controlplane.ports.telemetry import Telemetry, TelemetryError, TelemetryFailed

Row = TypeVar("Row", bound=Model)
#: The kind of sources that are not read: their agents come by themselves.
PUSH = "push"
#: Seconds that one call may take: an exporter that is slower has trouble of its own.
PATIENCE = 4.0
#: Readings that a source or a card may miss before it counts as silent, and never less than so many seconds.
MISSED, SHORTEST_SILENCE = 3, timedelta(seconds=15)

#: Written out, for to put it together takes longer than its answer.
_KNOWN = """
SELECT token.id, token.agent::text, node.id, node.name, node.locality::text, cluster.id, cluster.uid, cluster.name
  FROM monitoring_nodetoken AS token
  JOIN fleet_node AS node ON node.id = token.node_id
  JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id
 WHERE token.digest = %s AND token.revoked_at IS NULL AND node.removed_at IS NULL
"""


def sources_visible(user: RequestUser) -> QuerySet[Source]:
    """All of them for whoever operates the fleet, for their addresses tell of the company's network; else none."""
    rows = Source.objects.select_related("cluster")
    return rows if operates(user) else rows.none()


def node_tokens_visible(user: RequestUser) -> QuerySet[NodeToken]:
    """All of them for whoever operates the fleet, the newest first; else none."""
    rows = NodeToken.objects.select_related("node__cluster").order_by("-id")
    return rows if operates(user) else rows.none()


def node_token_known(text: str) -> NodeToken | None:
    """The token with that text, its node and its cluster; None if there is none that is good.

    Each batch asks for it: only what a batch needs is loaded.
    """
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [digest_of(text)])
        row = cursor.fetchone()
    if row is None:
        return None
    token, agent, node, name, locality, cluster, uid, named = row
    found = _loaded(NodeToken, id=token, agent=json.loads(agent), node_id=node)
    found.node = _loaded(
        Node, id=node, name=name, locality=json.loads(locality), cluster_id=cluster
    )
    found.node.cluster = _loaded(Cluster, id=cluster, uid=uid, name=named)
    return found


def _loaded(model: type[Row], **columns: object) -> Row:
    """As ``only`` leaves it: any other column is asked for when it is looked at."""
    names = [each.attname for each in model._meta.concrete_fields if each.attname in columns]
    return model.from_db(connection.alias, names, [columns[name] for name in names])


def kinds_readable() -> tuple[str, ...]:
    """Kinds of sources that people can make: those that an installed package reads, the tests' fake left out."""
    return tuple(kind for kind in registry.telemetry_kinds() if kind != "fake")


def sources_due(*, at: datetime) -> list[int]:
    """Primary keys of those whose turn it is to be read."""
    rows = Source.objects.filter(enabled=True, cluster__removed_at=None).exclude(kind=PUSH)
    # The loop does not come to the millisecond: half a second early is better than a whole turn late.
    return [
        pk
        for pk, every, tried_at in rows.values_list("pk", "every", "tried_at")
        if tried_at is None or at - tried_at >= timedelta(seconds=every - 0.5)
    ]


def silence_of(source: Source) -> timedelta:
    """How long nothing may be heard of one of its cards."""
    return max(MISSED * timedelta(seconds=source.every), SHORTEST_SILENCE)


def source_adapter(source: Source) -> Telemetry:
    """What reads it, kept for as long as its options stay the same.

    :raises TelemetryError: if its kind, an option or its token cannot be used.
    """
    options = json.dumps(source.options, sort_keys=True)
    return _adapter(source.kind, options, bytes(source.credential or b""))


@lru_cache(maxsize=64)
def _adapter(kind: str, options: str, sealed: bytes) -> Telemetry:
    try:
        token = decrypt(sealed).decode() if sealed else ""
    except Undecryptable as error:
        raise TelemetryFailed(f"its token cannot be read: {error}") from error
    return adapter_for(kind=kind, options=json.loads(options), token=token)


def adapter_for(*, kind: str, options: dict[str, Any], token: str) -> Telemetry:
    """A new adapter; nothing is read yet.

    :raises TelemetryError: if the kind, an option or the token cannot be used.
    """
    calls = registry.outbound(settings.NINEFOLD_TELEMETRY, "", seconds=PATIENCE)
    try:
        return registry.telemetry(kind, options, outbound=calls, token=token)
    except registry.UnknownAdapter as unknown:
        raise TelemetryError(str(unknown)) from unknown
