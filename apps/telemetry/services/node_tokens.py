"""Tokens by which agents push metrics of one node each."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.accounts.services.personal_tokens import generate_secret_token, token_digest
from apps.fleet.models import Node
from apps.fleet.selectors import require_fleet_operator
from apps.telemetry.models import AgentReport, NodeToken
from apps.telemetry.selectors import PUSH
from controlplane.persistence.transactions import fetch_row

TOKEN_PREFIX = "nft-"  # noqa: S105 - a public prefix, not a secret
#: Gaps that are remembered of one token, the highest ones, and how many numbers one may have: a day of a batch
#: each second. What would be older is refused by its time anyway.
MOST_GAPS, WIDEST_GAP = 16, 86_400
#: The source of the cluster's agents, where there is one.
_SOURCE = """
SELECT source.id FROM telemetry_source AS source
 WHERE source.cluster_id = %(cluster)s AND source.kind = %(push)s
 ORDER BY source.name LIMIT 1
"""
#: Accepts the batch if it is the newest of the token. Written as SQL, since building the query takes longer
#: than executing it.
_ACCEPT_NEWEST = f"""
UPDATE telemetry_nodetoken
   SET sequence = %(sequence)s, used_at = %(at)s, agent = %(agent)s::jsonb,
       gaps = CASE WHEN sequence = %(sequence)s - 1 THEN gaps
                   ELSE CASE WHEN jsonb_array_length(gaps) < {MOST_GAPS} THEN gaps ELSE gaps - 0 END
                     || jsonb_build_array(jsonb_build_array(
                            greatest(sequence + 1, %(sequence)s - {WIDEST_GAP}), %(sequence)s - 1))
               END
 WHERE id = %(token)s AND revoked_at IS NULL AND sequence < %(sequence)s
RETURNING sequence, ({_SOURCE})
"""  # noqa: S608 - made of numbers of ours alone
#: Accepts the batch if its number is in a gap; the gap is split.
_ACCEPT_EARLIER = f"""
UPDATE telemetry_nodetoken
   SET used_at = %(at)s, gaps = (
       SELECT coalesce(jsonb_agg(jsonb_build_array(low, high) ORDER BY low), '[]')
         FROM (SELECT low, high
                 FROM jsonb_array_elements(gaps) AS gap,
                      LATERAL (VALUES ((gap->>0)::bigint, least((gap->>1)::bigint, %(sequence)s - 1)),
                                      (greatest((gap->>0)::bigint, %(sequence)s + 1), (gap->>1)::bigint))
                           AS side (low, high)
                WHERE low <= high
                ORDER BY low DESC LIMIT {MOST_GAPS}) AS sides)
 WHERE id = %(token)s AND revoked_at IS NULL AND sequence > %(sequence)s
   AND EXISTS (SELECT FROM jsonb_array_elements(gaps) AS gap
                WHERE %(sequence)s BETWEEN (gap->>0)::bigint AND (gap->>1)::bigint)
RETURNING sequence, ({_SOURCE})
"""  # noqa: S608 - made of numbers of ours alone


@transaction.atomic
def node_token_issue(*, node: Node, actor: User | None) -> str:
    """The text of a new token, for the only time. Earlier tokens of the node stay good until they are revoked.

    ``actor`` is None where the product itself needs one.

    :raises PermissionRefused: unless they operate the fleet.
    """
    if actor is not None:
        require_fleet_operator(actor)
    text = generate_secret_token(TOKEN_PREFIX)
    token = NodeToken.objects.create(
        node=node,
        digest=token_digest(text),
        created_by_name=actor.username if actor is not None else "",
    )
    record_audit_entry(token, actor=actor, action="node_token.create", name=str(node))
    return text


@transaction.atomic
def node_token_revoke(*, token: NodeToken, actor: User, at: datetime) -> bool:
    """Revoke a token, once, from now on. Return whether it was the last valid one of its node.

    :raises PermissionRefused: unless they operate the fleet.
    """
    require_fleet_operator(actor)
    # When the last two tokens are revoked concurrently, the second transaction sees that its token is the last.
    of_node = NodeToken.objects.select_for_update(no_key=True).filter(node=token.node)
    list(of_node.order_by("pk").values_list("pk"))
    if not NodeToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=at):
        return False
    record_audit_entry(token, actor=actor, action="node_token.revoke", name=str(token.node))
    return not NodeToken.objects.filter(node=token.node, revoked_at=None).exists()


class AcceptedBatch(NamedTuple):
    """A batch whose number the token accepts."""

    #: The newest accepted number.
    sequence: int
    #: Primary key of the source of the cluster's agents, if there is one.
    source: int | None


def node_token_accept_newest(
    token: NodeToken, sequence: int, *, agent: AgentReport, at: datetime
) -> AcceptedBatch | None:
    """Accept the number if it is above all accepted ones; numbers that it skips become a gap."""
    return _accept_batch(_ACCEPT_NEWEST, token, sequence=sequence, agent=json.dumps(agent), at=at)


def node_token_accept_earlier(
    token: NodeToken, sequence: int, *, at: datetime
) -> AcceptedBatch | None:
    """Accept the number if it is in a gap, once."""
    return _accept_batch(_ACCEPT_EARLIER, token, sequence=sequence, at=at)


def _accept_batch(statement: str, token: NodeToken, **parameters: Any) -> AcceptedBatch | None:
    parameters |= {"token": token.pk, "cluster": token.node.cluster_id, "push": PUSH}
    row = fetch_row(statement, parameters)
    return None if row is None else AcceptedBatch(*row)
