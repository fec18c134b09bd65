"""Tokens by which agents push metrics of one node each."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.accounts.services.personal_tokens import generate_secret_token, token_digest
from apps.fleet.models import Node
from apps.fleet.selectors import require_fleet_operator
from apps.telemetry.models import NodeToken

TOKEN_PREFIX = "nft-"  # noqa: S105 - a public prefix, not a secret


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
    record_audit_entry(actor=actor, action="node_token.create", uid=token.uid, name=str(node))
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
    record_audit_entry(actor=actor, action="node_token.revoke", uid=token.uid, name=str(token.node))
    return not NodeToken.objects.filter(node=token.node, revoked_at=None).exists()
